// SPDX-License-Identifier: Apache-2.0

package httplimit_test

import (
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/httplimit"
)

// Each address has a bucket of its own, and each middleware has buckets of its own.
func TestPerAddress(t *testing.T) {
	one, two := httplimit.PerAddress("1/1h", 2).Wrap(ok), httplimit.PerAddress("1/1h", 1).Wrap(ok)
	from := func(handler http.Handler, address string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = address
		return serve(handler, r)
	}
	for i, tt := range []struct {
		handler http.Handler
		address string
		want    int
	}{
		{one, "192.0.2.1:1", 200}, {one, "192.0.2.1:2", 200}, {one, "192.0.2.1:3", 429},
		{one, "192.0.2.2:1", 200},
		{two, "192.0.2.1:1", 200}, {two, "192.0.2.1:1", 429},
	} {
		w := from(tt.handler, tt.address)
		if w.Code != tt.want || !strings.Contains(w.Header().Get("RateLimit"), `"per-address";r=`) || (w.Header().Get("Retry-After") != "") != (tt.want == 429) {
			t.Errorf("request %d from %s: got %d with %v, want %d", i, tt.address, w.Code, w.Header(), tt.want)
		}
	}
}

func TestMust(t *testing.T) {
	handler := httplimit.Must(withoutPolicy(t), "api", "100/1m", 2, httplimit.ByHeader("X-API-Key", httplimit.MissingDeny)).Wrap(ok)
	for i, tt := range []struct {
		key  string
		want int
	}{{"a", 200}, {"a", 200}, {"a", 429}, {"b", 200}, {"", 403}} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("X-API-Key", tt.key)
		w := serve(handler, r)
		if got := w.Header().Get("RateLimit-Policy"); w.Code != tt.want || tt.want != 403 && got != `"api";q=2;w=2` {
			t.Errorf("request %d with key %q: got %d and RateLimit-Policy %q, want %d", i, tt.key, w.Code, got, tt.want)
		}
	}
}

// A limit that is written wrong panics with an error that names place, value and remedy.
func TestMust_Panics(t *testing.T) {
	key := httplimit.ByHeader("X-API-Key", httplimit.MissingDeny)
	must := func(name, rate string, burst int, key httplimit.Key) func() {
		return func() { httplimit.Must(withoutPolicy(t), name, rate, burst, key) }
	}
	for what, tt := range map[string]struct {
		make func()
		is   error // that the panic wraps
		want []string
	}{
		"a rate without a period":   {must("api", "100", 20, key), bucket.ErrRate, []string{`httplimit: new: limit "api": rate "100": `, "write tokens/duration, as in 7/1m"}},
		"a rate of words":           {must("api", "many/1m", 20, key), bucket.ErrRate, []string{`limit "api": rate "many/1m": `}},
		"a rate of nothing":         {must("api", "0/1m", 20, key), bucket.ErrRate, []string{`limit "api": rate "0/1m": `}},
		"no rate":                   {must("api", "", 20, key), bucket.ErrRate, []string{`limit "api": rate "": `}},
		"no burst":                  {must("api", "100/1m", 0, key), nil, []string{`limit "api": burst 0: must be between 1 and 9007199254740`}},
		"a negative burst":          {must("api", "100/1m", -1, key), nil, []string{`limit "api": burst -1: must be between 1 and `}},
		"nothing":                   {must("api", "", 0, key), nil, []string{`limit "api": bucket is required: set rate and burst, as in "100/1m" and 20`}},
		"a name that is no name":    {must("the API", "100/1m", 20, key), nil, []string{`limit "the API": name "the API": must be 1 to 64 letters`}},
		"no key":                    {must("api", "100/1m", 20, httplimit.Key{}), nil, []string{`limit "api": key is required`}},
		"several mistakes":          {must("the API", "100", 20, httplimit.Key{}), bucket.ErrRate, []string{"must be 1 to 64 letters", `rate "100"`, "key is required"}},
		"no limiter":                {func() { httplimit.Must(nil, "api", "100/1m", 20, key) }, nil, []string{"limiter is required: create one with mete.New, or use PerAddress"}},
		"per address, a wrong rate": {func() { httplimit.PerAddress("1m/100", 20) }, bucket.ErrRate, []string{`limit "per-address": rate "1m/100": `}},
		"per address, a huge burst": {func() { httplimit.PerAddress("100/1m", math.MaxInt) }, nil, []string{`limit "per-address": burst 9223372036854775807: must be between 1 and `}},
	} {
		func() {
			defer func() {
				err, _ := recover().(error)
				if err == nil || tt.is != nil && !errors.Is(err, tt.is) {
					t.Errorf("%s: got panic %v, want an error that wraps %v", what, err, tt.is)
					return
				}
				for _, want := range tt.want {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("%s: got panic %q, which lacks %q", what, err, want)
					}
				}
			}()
			tt.make()
		}()
	}
}

// A limit is given in one way only, and costs are whole tokens.
func TestLimit_RateAndBurst(t *testing.T) {
	both := httplimit.Limit{Name: "l", Rate: "1/1h", Burst: 1, Bucket: hourly(t, 1), Key: httplimit.Everyone()}
	if _, err := httplimit.New(withoutPolicy(t), httplimit.Config{}, both); err == nil || !strings.Contains(err.Error(), "set only one of the two") {
		t.Errorf("rate, burst and bucket: got error %v, want one that says to set one", err)
	}
	handler := routeOf(t, withoutPolicy(t), httplimit.Config{}, httplimit.Limit{Name: "l", Rate: "1/1h", Burst: 7, Cost: 3, Key: httplimit.Everyone()})
	for i, want := range []int{200, 200, 429} {
		if got := serve(handler, httptest.NewRequest("GET", "/", nil)).Code; got != want {
			t.Errorf("request %d, at 3 of 7 tokens each: got %d, want %d", i, got, want)
		}
	}
	for _, cost := range []int{-1, 8, math.MaxInt} {
		l := httplimit.Limit{Name: "l", Rate: "1/1h", Burst: 7, Cost: cost, Key: httplimit.Everyone()}
		if _, err := httplimit.New(withoutPolicy(t), httplimit.Config{}, l); err == nil || !strings.Contains(err.Error(), `limit "l": cost`) {
			t.Errorf("cost %d of 7 tokens: got error %v, want one that names the cost", cost, err)
		}
	}
}
