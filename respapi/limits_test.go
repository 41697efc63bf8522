// SPDX-License-Identifier: Apache-2.0

package respapi_test

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/respapi"
)

// Clients choose limits, and the store has 65,536 numbers for limits. However many limits they choose, decisions
// about other keys stay exact, and memory stays bounded.
func TestThrottle_MoreLimitsThanAnyTable(t *testing.T) {
	const limits, step, perStep = 1<<20 + 1, 1 << 14, 3
	clock := newClock()
	store, err := memstore.New(memstore.Config{Now: clock.read, MaxKeys: 1 << 17})
	if err != nil {
		t.Fatal(err)
	}
	_, addr := serve(t, newLimiter(t, store, "", mete.Config{}), respapi.Config{})
	normal, flood := dial(t, addr), dial(t, addr)
	capacity, spent := int64(1000), int64(0)
	var memory [2]runtime.MemStats
	for sent := 0; sent < limits; sent += step {
		n := min(step, limits-sent)
		var commands strings.Builder
		for i := range n {
			id := sent + i
			commands.WriteString(frame("CL.THROTTLE", fmt.Sprint("k", id), fmt.Sprint(9+id%1000), fmt.Sprint(1+id/1000), "86400"))
		}
		go io.WriteString(flood, commands.String())
		for i := range n {
			id := sent + i
			want := fmt.Sprintf("*[0,%d,%d,-1,", 10+id%1000, 9+id%1000)
			if got := flood.read(); !strings.HasPrefix(got, want) && sent+i < 1<<17 {
				t.Fatalf("limit %d: got %s, want %s…", id, got, want)
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
