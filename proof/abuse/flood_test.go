// SPDX-License-Identifier: Apache-2.0

package abuse_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/proof/meted"
)

// floodPrefix is how the keys of a flood begin.
const floodPrefix = "flooduser-"

// Five million new clients neither make the server grow nor evict the client with an empty bucket.
func TestAbuse_KeyFlood(t *testing.T) {
	t.Parallel()
	s := start(t, `{"rules": [{"name": "each", "limit_keys": ["header:x-user"], "algorithm": "token_bucket",
		"algorithm_config": {"rate": "1/10h", "burst": 3}}]}`, fmt.Sprintf("store: memory:?max_keys=%d\n", floodBound))
	victim := takeBody("header:x-user", "victim")
	for i, want := range []int{200, 200, 200, 429} {
		if got := ask(t, http.MethodPost, s.URL+"/v1/take?status=429", victim); got.status != want {
			t.Fatalf("take %d of the victim: %d %s, want %d", i+1, got.status, got.body, want)
		}
	}
	flood(t, s.URL, 2*floodBound) // the bound is reached
	before := resident(t, s)
	flood(t, s.URL, flooded-2*floodBound)
	after := resident(t, s)
	t.Logf("%d MiB resident after %d keys, %d MiB after %d", before>>20, 2*floodBound, after>>20, flooded)
	if after > before+grownMost {
		t.Errorf("%d bytes resident after %d keys, %d after %d: it grows with the keys", before, 2*floodBound, after, flooded)
	}
	if got := ask(t, http.MethodPost, s.URL+"/v1/take?status=429", victim); got.status != http.StatusTooManyRequests {
		t.Errorf("the victim after the flood: %d %s, want 429", got.status, got.body)
	}
	metrics := ask(t, http.MethodGet, s.AdminURL+"/metrics", "").body
	if lines := strings.Count(metrics, "\n"); lines > 1000 || strings.Contains(metrics, floodPrefix) {
		t.Errorf("%d lines of metrics after the flood, want no more for more keys, and no key", lines)
	}
}

// flood asks for a token for n random users, by the batch.
func flood(t *testing.T, url string, n int) {
	t.Helper()
	var left atomic.Int64
	left.Store(int64(n))
	var done sync.WaitGroup
	for range 4 {
		done.Go(func() {
			var body strings.Builder
			for left.Add(-httpapi.MaxBatch) > -httpapi.MaxBatch {
				body.Reset()
				body.WriteString(`{"requests":[`)
				for i := range httpapi.MaxBatch {
					if i > 0 {
						body.WriteByte(',')
					}
					body.WriteString(`{"attributes":{"header:x-user":"` + floodPrefix)
					body.WriteString(strconv.FormatUint(rand.Uint64(), 36))
					body.WriteString(`"}}`)
				}
				body.WriteString(`]}`)
				if got := ask(t, http.MethodPost, url+"/v1/take", body.String()); got.status != http.StatusOK {
					t.Errorf("a batch of the flood: %d %.200s, want 200", got.status, got.body)
					return
				}
			}
		})
	}
	done.Wait()
}

// resident is the memory of the server that is in use now, in bytes.
func resident(t *testing.T, s *meted.Server) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.Process.Pid()))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	kib, _, _ := strings.Cut(strings.TrimSpace(rest), " kB")
	n, err := strconv.ParseInt(kib, 10, 64)
	if err != nil {
		t.Fatalf("no VmRSS in %s: %v", text, err)
	}
	return n << 10
}
