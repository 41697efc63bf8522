// SPDX-License-Identifier: Apache-2.0

package respapi_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/respapi"
)

// Clients choose limits, and the store has 65,536 numbers for limits. However many limits they choose, decisions
// about other keys stay exact, and memory stays bounded.
func TestThrottle_MoreLimitsThanAnyTable(t *testing.T) {
	const step, perStep = 1 << 14, 3
	limits := 1<<20 + 1
	if testing.Short() {
		limits = 1<<17 + 1 // twice the numbers
	}
	clock := newClock()
	store, err := memstore.New(memstore.Config{Now: clock.read, MaxKeys: 1 << 17})
	if err != nil {
		t.Fatal(err)
	}
	_, addr := serve(t, newLimiter(t, store, "", mete.Config{}), respapi.Config{})
	normal, flood := dial(t, addr), dial(t, addr)
	flood.SetDeadline(time.Time{})
	normal.SetDeadline(time.Time{})
	const capacity, linesPerReply = 1000, 6
	spent := 0
	var memory [2]runtime.MemStats
	var commands []byte
	for sent := 0; sent < limits; sent += step {
		n := min(step, limits-sent)
		commands = commands[:0]
		for id := sent; id < sent+n; id++ {
			commands = fmt.Appendf(commands, "CL.THROTTLE k%d %d %d 86400\n", id, 9+id%1000, 1+id/1000)
		}
		go flood.Write(commands)
		for range n * linesPerReply {
			line, err := flood.r.ReadSlice('\n')
			if err != nil || line[0] == '-' {
				t.Fatalf("got %q and error %v", line, err)
			}
		}
		for range perStep {
			spent++
			normal.want(fmt.Sprintf("*[0,%d,%d,-1,%d]", capacity, capacity-spent, spent*86400), "CL.THROTTLE", "normal", fmt.Sprint(capacity-1), "1", "86400")
		}
		if sent == limits/2/step*step {
			runtime.GC()
			runtime.ReadMemStats(&memory[0])
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&memory[1])
	if grown := int64(memory[1].HeapAlloc) - int64(memory[0].HeapAlloc); grown > 16<<20 {
		t.Errorf("the second half of the limits took %d bytes", grown)
	}
}
