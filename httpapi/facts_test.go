// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/storetest"
)

// attributes returns a request with n attributes that no rule asks for, and more.
func attributes(n int, more string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"query:q%d":"%d",`, i, i)
	}
	return `{"attributes":{` + b.String() + more + `}}`
}

func TestAttributes_AsManyAsFit(t *testing.T) {
	for _, n := range []int{0, 7, 14, 15, 16, 17, 100, 3000} {
		api, _ := newAPI(t, perKey, httpapi.Config{})
		for i, want := range []int{200, 200, denial} { // the key is found, wherever it stands
			if w := post(api, "/v1/take", attributes(n, `"header:X-API-Key":"k1"`)); verdict(w) != want {
				t.Errorf("take %d with %d attributes: got %d %s, want %d", i+1, n+1, w.Code, w.Body, want)
			}
		}
		if w := post(api, "/v1/take", attributes(n, `"header:x-api-key":"k2"`)); w.Code != 200 {
			t.Errorf("another key among %d attributes: got %d %s, want 200", n+1, w.Code, w.Body)
		}
		w := post(api, "/v1/take", attributes(n, `"header:x-api-key":"k3","header:X-Api-Key":"k4"`))
		if w.Code != 400 || !strings.Contains(w.Body.String(), "duplicate") {
			t.Errorf("a key twice among %d attributes: got %d %s, want 400", n+2, w.Code, w.Body)
		}
	}
}

// The memory of one request serves the next. Nothing of it may come through: no
// attribute of another request, and no change to a string that a hook has kept.
func TestRequestsDoNotMix(t *testing.T) {
	m, err := policy.Load([]byte(`{"rules": [{"name": "none", "limit_keys": ["header:x-api-key"], "algorithm": "token_bucket",
		"algorithm_config": {"rps": 1, "burst": 1}}]}`), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	kept := map[string]int{}
	key, cookie := attribute(t, "header:x-api-key"), attribute(t, "cookie:c")
	lim, err := mete.New(storetest.NewModel(newClock().read), m, mete.Config{OnDenial: func(_ context.Context, d *mete.Denial) {
		value, _ := d.Attributes.Lookup(key)
		if other, ok := d.Attributes.Lookup(cookie); ok != strings.HasPrefix(value, "odd") {
			t.Errorf("%s: got cookie %q, %t", value, other, ok)
		}
		mu.Lock()
		defer mu.Unlock()
		kept[value]++
	}})
	if err != nil {
		t.Fatal(err)
	}
	api, err := httpapi.New(lim, httpapi.Config{})
	if err != nil {
		t.Fatal(err)
	}
	const clients, rounds = 8, 20
	var asking sync.WaitGroup
	for i := range clients {
		asking.Go(func() {
			one := fmt.Sprintf(`{"attributes":{"header:x-api-key":"even%d"}}`, i)
			if i%2 == 1 {
				one = fmt.Sprintf(`{"attributes":{"cookie:c":"c%d","header:x-api-key":"odd%d"}}`, i, i)
			}
			for range rounds {
				post(api, "/v1/take", one)
				post(api, "/v1/take", `{"attributes":{"header:x-api-key":`)
				post(api, "/v1/take", `{"requests":[`+one+`,`+one+`]}`)
			}
		})
	}
	asking.Wait()
	if len(kept) != clients {
		t.Errorf("%d clients were denied, want %d: %v", len(kept), clients, kept)
	}
	for value, n := range kept {
		if n != 3*rounds-1 { // all except the allowed one
			t.Errorf("%s was denied %d times, want %d", value, n, 3*rounds-1)
		}
	}
}

func attribute(t *testing.T, name string) policy.Attribute {
	t.Helper()
	a, err := policy.ParseAttribute(name)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// A long answer is sent whole, with its length.
func TestBatch_IsNotSentInChunks(t *testing.T) {
	api, _ := newAPI(t, perKey, httpapi.Config{})
	server := httptest.NewServer(api)
	defer server.Close()
	for _, n := range []int{1, 10, httpapi.MaxBatch} {
		resp, err := http.Post(server.URL+"/v1/take", "application/json", strings.NewReader(`{"requests":[`+strings.Repeat(k1+",", n-1)+k1+`]}`))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != 200 || resp.ContentLength <= 0 || len(resp.TransferEncoding) > 0 {
			t.Errorf("a batch of %d: got %d, length %d, %q", n, resp.StatusCode, resp.ContentLength, resp.TransferEncoding)
		}
	}
}
