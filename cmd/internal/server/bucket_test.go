// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/internal/testkit"
)

// keyedRules have a limit of every kind, each for a path, whose buckets refill nothing
// while a test runs. All of them hold 10.
const keyedRules = `bundle_version: 1
issued_at: 2026-01-01T00:00:00Z
expires_at: 2999-01-01T00:00:00Z
slot_by: header:x-tenant
policies:
  - id: acme
    spec:
      rules:
        - {name: token, match: {path: /token}, deadline: 10s, limit_keys: ["ip:address"], algorithm_config: {rate: 1/1d, burst: 10}}
        - {name: interval, match: {path: /interval}, deadline: 10s, limit_keys: ["ip:address"], algorithm_config: {refill: interval, anchor: first, rate: 10/9d, burst: 10}}
        - {name: leaky, match: {path: /leaky}, deadline: 10s, limit_keys: ["ip:address"], algorithm: leaky_bucket, algorithm_config: {rate: 1/1d, queue: 9}}
        - {name: fixed, match: {path: /fixed}, deadline: 10s, limit_keys: ["ip:address"], algorithm: fixed_window, algorithm_config: {tokens: 10, window: 9d, anchor: first}}
        - {name: sliding, match: {path: /sliding}, deadline: 10s, limit_keys: ["ip:address"], algorithm: sliding_window, algorithm_config: {tokens: 10, window: 9d}}
        - {name: log, match: {path: /log}, deadline: 10s, limit_keys: ["ip:address"], algorithm: sliding_log, algorithm_config: {tokens: 10, window: 9d}}
        - {name: split, match: {path: /split}, deadline: 10s, limit_keys: ["ip:address"], algorithm_config: {rate: 1/1d, burst: 10, shards: 2}}
        - {name: leased, match: {path: /leased}, deadline: 10s, limit_keys: ["ip:address"], algorithm_config: {rate: 1/1d, burst: 10, leased: true}}
        - {name: network, match: {path: /network}, deadline: 10s, limit_keys: ["ip:address/56"], algorithm_config: {rate: 1/1d, burst: 10}}
        - {name: secret, match: {path: /secret}, deadline: 10s, limit_keys: ["header:authorization"], algorithm_config: {rate: 1/1d, burst: 10}}
        - {name: slotted, match: {path: /slotted}, deadline: 10s, limit_keys: ["header:x-tenant", "ip:address"], algorithm_config: {rate: 1/1d, burst: 10}}
        - {name: shadowed, mode: shadow, match: {path: /shadowed}, deadline: 10s, limit_keys: ["ip:address"], algorithm_config: {rate: 1/1d, burst: 10}}
        - name: several
          match: {path: /several}
          limit_keys: ["ip:address"]
          deadline: 10s
          limits:
            - {name: day, rate: 1/1d, burst: 10}
            - {name: week, algorithm: fixed_window, tokens: 1000, window: 9d, anchor: first}
`

// keyedLimits are those limits, and begin the keys of theirs.
var keyedLimits = []string{"token", "interval", "leaky", "fixed", "sliding", "log", "split", "leased", "network", "secret", "slotted", "shadowed", "several/day"}

// A keyed is a client's bucket under one of those limits, and two servers that share it.
type keyed struct {
	t         *testing.T
	a, b      *running
	name, key string
}

// takes spends so much at a server, and returns whether that was allowed.
func (k *keyed) takes(s *running, cost int) bool {
	k.t.Helper()
	status, text := s.send("POST", s.main+"/v1/take?status=429", k.request(cost))
	if status != http.StatusOK && status != http.StatusTooManyRequests {
		k.t.Fatalf("take: %d %s", status, text)
	}
	return status == http.StatusOK
}

// request is one of the client, as JSON.
func (k *keyed) request(cost int) string {
	rule, _, _ := strings.Cut(k.name, "/")
	return fmt.Sprintf(`{"cost":%d,"attributes":{"path":"/%s","ip:address":"2001:db8::77","header:authorization":"Bearer abc","header:x-tenant":"acme"}}`, cost, rule)
}

// send sends a request as an operator.
func (r *running) send(method, url, body string) (int, string) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	return read(r.t, resp)
}

// find asks an explanation for the key.
func (k *keyed) find() {
	k.t.Helper()
	status, text := k.a.send("POST", k.a.admin+"/v1/explain", k.request(1))
	for _, part := range strings.Split(text, `"key":"`)[1:] {
		part, _, _ = strings.Cut(part, `"`)
		if _, bare, ok := strings.Cut(part, "}"); strings.HasPrefix(part, k.name+":") || ok && strings.HasPrefix(bare, k.name+":") {
			k.key = part
			return
		}
	}
	k.t.Fatalf("no key of %s in %d %s", k.name, status, text)
}

// asked asks the admin address of a server, and reads the answer.
func asked[T any](k *keyed, s *running, method, path string, body map[string]any) (x T) {
	k.t.Helper()
	text := ""
	if body != nil {
		buf, err := json.Marshal(body)
		if err != nil {
			k.t.Fatal(err)
		}
		text = string(buf)
	}
	status, answer := s.send(method, s.admin+path, text)
	if err := json.Unmarshal([]byte(answer), &x); status != http.StatusOK || err != nil {
		k.t.Fatalf("%s %s %s: %d %s, %v", method, path, text, status, answer, err)
	}
	return x
}

func (k *keyed) level(s *running) float64 {
	k.t.Helper()
	b := asked[api.Bucket](k, s, "GET", "/v1/bucket?key="+url.QueryEscape(k.key), nil)
	return float(b.Remaining)
}

func float(n api.Amount) float64 { return float64(n) / 1000 }

// near reports whether a level equals want, allowing for the refill during the test.
func near(level, want float64) bool { return level >= want-0.01 && level <= want+0.01 }

// A bucket action by key takes effect immediately and on every server. Its undo restores the bucket.
func TestBucket_ByKey(t *testing.T) {
	t.Parallel()
	t.Run("memory", func(t *testing.T) {
		c := testConfig()
		c.Policy = policyFile(t, keyedRules)
		s := start(t, c)
		testByKey(t, s, s)
	})
	forEachStore(t, func(t *testing.T, e remoteStore) {
		c := e.patient(t, keyedRules)
		c.HashKey = "one for both"
		testByKey(t, start(t, c), start(t, c))
	})
}

// testByKey acts on the buckets of all limits before it checks any. The other server learns of all actions
// after one delay.
func testByKey(t *testing.T, a, b *running) {
	var all []*keyed
	for _, name := range keyedLimits {
		k := &keyed{t: t, a: a, b: b, name: name}
		k.find()
		k.reset()
		all = append(all, k)
	}
	for _, do := range []func(*keyed) (during, after func()){(*keyed).block, (*keyed).limit, (*keyed).allow} {
		var during, after []func()
		for _, k := range all {
			d, a := do(k)
			during, after = append(during, d), append(after, a)
		}
		for _, look := range slices.Concat(during, after) {
			look()
		}
	}
}

// reset spends, resets and undoes that.
func (k *keyed) reset() {
	k.t.Helper()
	for range 7 {
		if !k.takes(k.b, 1) {
			k.t.Fatalf("%s: a first request is denied", k.name)
		}
	}
	before := k.level(k.a)
	done := asked[api.BucketReset](k, k.a, "POST", "/v1/bucket/reset", map[string]any{"key": k.key, "reason": "test"})
	exact := k.name != "leased" // servers lease its tokens and report their use later
	if given := float(done.Given); !near(k.level(k.b), 10) || !near(given, 10-before) || exact && !near(before, 3) {
		k.t.Errorf("%s: %v left of 10, given %v, then %v", k.name, before, given, k.level(k.b))
	}
	undone := asked[api.BucketTake](k, k.b, "POST", "/v1/bucket/take", map[string]any{"key": k.key, "tokens": done.Given, "reason": "undo"})
	if after := k.level(k.a); !near(after, before) || !near(float(undone.After.Remaining), before) || undone.Taken != done.Given {
		k.t.Errorf("%s: after the undo %v, taken %v; want %v", k.name, after, undone.Taken, before)
	}
	allowed := 0
	for range 12 {
		if k.takes(k.b, 1) {
			allowed++
		}
	}
	if want := 3; exact && allowed != want && k.name != "shadowed" {
		k.t.Errorf("%s: after the undo %d are allowed, want %d", k.name, allowed, want)
	}
}

// put makes an override for the key, until the test ends it.
func (k *keyed) put(action string, more map[string]any) (id string, end func()) {
	k.t.Helper()
	body := map[string]any{"action": action, "key": k.key, "reason": "test", "author": "kim", "expires_at": time.Now().Add(time.Hour).UTC().Format(time.RFC3339)}
	for name, value := range more {
		body[name] = value
	}
	id = asked[api.OverrideStatus](k, k.a, "PUT", "/v1/overrides", body).ID
	return id, func() {
		k.t.Helper()
		asked[struct{}](k, k.b, "DELETE", "/v1/overrides/"+id+"?author=kim&reason=undo", nil)
	}
}

// wantAllowed waits until both servers would allow a request of the client, or deny it.
func (k *keyed) wantAllowed(what string, allowed bool) {
	k.t.Helper()
	for _, s := range []*running{k.a, k.b} {
		testkit.Until(k.t, k.name+": "+what, func() bool {
			_, text := s.send("POST", s.main+"/v1/peek", k.request(1))
			return strings.Contains(text, `"allowed":true`) == allowed
		})
	}
}

func (k *keyed) block() (during, after func()) {
	k.t.Helper()
	asked[api.BucketReset](k, k.a, "POST", "/v1/bucket/reset", map[string]any{"key": k.key, "reason": "test"})
	k.wantAllowed("a full bucket admits", true)
	before := k.level(k.a)
	id, end := k.put("block", nil)
	return func() {
		k.wantAllowed("it is blocked", false)
		if x := asked[api.Bucket](k, k.b, "GET", "/v1/bucket?key="+url.QueryEscape(k.key), nil); x.BlockedBy == nil || x.BlockedBy.ID != id || !near(float(x.Remaining), before) {
			k.t.Errorf("%s: blocked: %+v", k.name, x)
		}
		end()
	}, func() { k.wantAllowed("it is not blocked any more", true) }
}

func (k *keyed) limit() (during, after func()) {
	k.t.Helper()
	asked[api.BucketReset](k, k.a, "POST", "/v1/bucket/reset", map[string]any{"key": k.key, "reason": "test"})
	rule, limit, several := strings.Cut(k.name, "/")
	algorithm := map[string]string{"leaky": "leaky_bucket", "fixed": "fixed_window", "sliding": "sliding_window", "log": "sliding_log"}[k.name]
	config := map[string]any{"rate": "1/1d", "burst": 30}
	switch algorithm {
	case "leaky_bucket":
		config = map[string]any{"rate": "1/1d", "queue": 29}
	case "":
		algorithm = "token_bucket"
		if k.name == "interval" {
			config = map[string]any{"rate": "10/9d", "burst": 30, "refill": "interval", "anchor": "first"}
		}
	default:
		config = map[string]any{"tokens": 30, "window": "9d"}
		if k.name == "fixed" {
			config["anchor"] = "first"
		}
	}
	more := map[string]any{"rules": []string{rule}, "algorithm": algorithm, "algorithm_config": config}
	if several {
		config["name"], config["algorithm"] = limit, algorithm
		more = map[string]any{"rules": []string{rule}, "limits": []any{config}}
	}
	k.takes(k.a, 4)
	_, end := k.put("limit", more)
	holds := func(what string, is func(level float64) bool) {
		for _, s := range []*running{k.a, k.b} {
			testkit.Until(k.t, k.name+": "+what, func() bool { return is(k.level(s)) })
		}
	}
	return func() {
		holds("the other limit holds", func(level float64) bool { return level > 25 })
		end()
	}, func() { holds("the rule's limit holds again", func(level float64) bool { return level < 8 }) }
}

func (k *keyed) allow() (during, after func()) {
	k.t.Helper()
	asked[api.BucketTake](k, k.a, "POST", "/v1/bucket/take", map[string]any{"key": k.key, "tokens": json.Number(strconv.Itoa(10))})
	if k.name != "shadowed" {
		k.wantAllowed("an empty bucket denies", false)
	}
	_, end := k.put("allow", nil)
	return func() {
			k.wantAllowed("it is let through", true)
			before := k.level(k.b)
			if k.takes(k.a, 1); !near(k.level(k.b), before) {
				k.t.Errorf("%s: uncharged, but %v are left of %v", k.name, k.level(k.b), before)
			}
			end()
		}, func() {
			if k.name != "shadowed" {
				k.wantAllowed("it is denied again", false)
			}
		}
}
