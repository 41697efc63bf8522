// SPDX-License-Identifier: Apache-2.0

package httplimit_test

import (
	"encoding/base64"
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/storetest"
)

// retryAfter is Retry-After of a denied request of that subject at 192.0.2.1.
func retryAfter(t *testing.T, key, subject string, config httplimit.Config) string {
	t.Helper()
	limiter := newLimiter(t, storetest.NewModel(new(clock).instant),
		`{"name": "slow", "limit_keys": ["`+key+`"], "algorithm_config": {"rate": "1/1d", "burst": 1}}`)
	handler := newMiddleware(t, limiter, config).Wrap(ok)
	var got string
	for range 2 {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = "192.0.2.1:80"
		claims := base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"` + subject + `"}`))
		r.Header.Set("Authorization", "Bearer e30."+claims+".x")
		got = serve(handler, r).Header().Get("Retry-After")
	}
	if got == "" {
		t.Fatal("the second request was not denied")
	}
	return got
}

// Subjects behind one address have different waits, whether or not they share a bucket, and
// whether or not the middleware reads their tokens. A client has the same wait each time.
func TestWrap_JitterSpreadsSubjects(t *testing.T) {
	for _, key := range []string{"jwt:sub", "ip:address", "method"} {
		for _, reads := range []bool{true, false} {
			if key == "jwt:sub" && !reads {
				continue
			}
			config := httplimit.Config{UnverifiedClaims: reads, JitterKey: []byte("fixed, so that the test is")}
			waits := map[string]bool{}
			for _, subject := range []string{"alice", "bob", "carol"} {
				wait := retryAfter(t, key, subject, config)
				if again := retryAfter(t, key, subject, config); again != wait {
					t.Errorf("%s, %s: got %s, then %s", key, subject, wait, again)
				}
				waits[wait] = true
			}
			if len(waits) != 3 {
				t.Errorf("%s, tokens are read: %v: three subjects have the waits %v", key, reads, fmt.Sprint(waits))
			}
		}
	}
}
