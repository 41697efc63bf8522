// SPDX-License-Identifier: Apache-2.0

package pgstore_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/policy"
)

// TestHashKey_OfThreeProcesses proves that processes without a HashKey share limits through the store's secret.
func TestHashKey_OfThreeProcesses(t *testing.T) {
	t.Parallel()
	prepare := func() string { return with(proctest.PostgresURL(t), "timeout=1m&schema="+proctest.PostgresSchema(t)) }
	results := proctest.RunAgain(t, 3, prepare, func(url string) string { return takesThree(t, url) })
	if results == nil {
		return
	}
	sum := 0
	for _, admitted := range results {
		n, err := strconv.Atoi(admitted)
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	if sum != 3 {
		t.Errorf("three processes admitted %d, want the limit of 3", sum)
	}
}

// takesThree is one process that tries to spend a client's whole limit.
func takesThree(t *testing.T, url string) string {
	node, err := pgstore.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	m, err := policy.Load([]byte(`{"rules": [{"name": "per-key", "limit_keys": ["header:x-api-key"], "on_store_error": "closed", "deadline": "10s",
		"algorithm_config": {"rate": "3/1h", "burst": 3}}]}`), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	limiter, err := mete.New(node, m, mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	admitted := 0
	for range 3 {
		d, err := limiter.Take(context.Background(), mete.Request{Attributes: mete.Attrs{"header:x-api-key": "k1"}})
		if err != nil || d.Degraded {
			t.Fatalf("%+v, error %v", d, err)
		}
		if d.Allowed {
			admitted++
		}
	}
	return fmt.Sprint(admitted)
}
