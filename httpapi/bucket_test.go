// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/api"
	"github.com/metehq/mete/audit"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
	"github.com/metehq/mete/topkeys"
)

// bucketRules have a limit of every kind for one user, and one that is split.
const bucketRules = `{"rules": [
	{"name": "token", "group": "1", "limit_keys": ["query:user"], "algorithm_config": {"rps": 10, "burst": 4}},
	{"name": "leaky", "group": "2", "limit_keys": ["query:user"], "algorithm": "leaky_bucket", "algorithm_config": {"rps": 10, "queue": 9}},
	{"name": "fixed", "group": "3", "limit_keys": ["query:user"], "algorithm": "fixed_window", "algorithm_config": {"tokens": 10, "window": "1m", "anchor": "key"}},
	{"name": "sliding", "group": "4", "limit_keys": ["query:user"], "algorithm": "sliding_window", "algorithm_config": {"tokens": 10, "window": "1m"}},
	{"name": "log", "group": "5", "limit_keys": ["query:user"], "algorithm": "sliding_log", "algorithm_config": {"tokens": 10, "window": "1m"}},
	{"name": "split", "group": "6", "mode": "shadow", "limit_keys": ["query:user"], "algorithm_config": {"rps": 10, "burst": 8, "shards": 4}},
	{"name": "secret", "group": "7", "limit_keys": ["header:x-api-key", "ip:address"], "algorithm_config": {"rate": "1/1h", "burst": 1}}
], "overrides": [
	{"id": "more", "action": "limit", "key": "token:user=vip-customer", "algorithm_config": {"rps": 10, "burst": 40}, "reason": "pays", "author": "kim", "expires_at": "2999-01-01T00:00:00Z"},
	{"id": "gone", "action": "block", "key": "log:user=bad-customer", "reason": "scrapes", "author": "kim", "expires_at": "2999-01-01T00:00:00Z"}]}`

// A buckets is an API for administrators, with all that it was told of.
type buckets struct {
	*testing.T
	*httpapi.API
	clock *clock
	audit *audit.Log
	log   bytes.Buffer
}

func newBuckets(t *testing.T, store mete.Store, c *clock) *buckets {
	t.Helper()
	m, err := policy.Load([]byte(bucketRules), policy.Options{HashKey: []byte("k")})
	if err != nil {
		t.Fatal(err)
	}
	top, err := topkeys.New(topkeys.Config{}, c.read())
	if err != nil {
		t.Fatal(err)
	}
	lim, err := mete.New(store, m, mete.Config{Now: c.read, OnDenial: func(_ context.Context, d *mete.Denial) { top.OnDenial(c.read(), d) }})
	if err != nil {
		t.Fatal(err)
	}
	b := &buckets{T: t, clock: c}
	b.audit = auditBy(t, &b.log, nil, c.read)
	b.API, err = httpapi.New(lim, httpapi.Config{
		Admin: true, Top: httpapi.Top{Tracker: top, Now: c.read, MaskKey: []byte("m")}, Role: roleOfToken,
		Audit: b.audit,
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func freshBuckets(t *testing.T) *buckets {
	t.Helper()
	c := newClock()
	return newBuckets(t, storetest.NewModel(c.read), c)
}

// ask asks with a role, and reads the answer into x where it is 200.
func (b *buckets) ask(role, method, path, body string, x any) (status int, text string) {
	b.Helper()
	w := do(b, method, path, body, "Authorization", "Bearer "+role, "Content-Type", "application/json")
	if w.Code == http.StatusOK && x != nil {
		d := json.NewDecoder(strings.NewReader(w.Body.String()))
		if d.DisallowUnknownFields(); d.Decode(x) != nil {
			b.Fatalf("%s %s: %s cannot be parsed", method, path, w.Body)
		}
	}
	return w.Code, w.Body.String()
}

func (b *buckets) bucket(role, key string) (x api.Bucket) {
	b.Helper()
	if status, text := b.ask(role, "GET", "/v1/bucket?key="+url.QueryEscape(key), "", &x); status != http.StatusOK {
		b.Fatalf("bucket %s: %d %s", key, status, text)
	}
	return x
}

// Of each algorithm is shown what it holds, and a reset and what undoes it are exact.
func TestBucket_EachAlgorithm(t *testing.T) {
	for _, tt := range []struct {
		name, algorithm, words     string
		capacity, remaining        string // after 3.25 were taken
		owed, queue, given, retake string
		shards                     int
		rate                       api.Rate
	}{
		{"token", "token_bucket", "capacity 4, refill 10/1s", "4", "0.75", "0", "0", "3.25", "3.25", 0, api.Rate{Tokens: 10_000, Per: api.Seconds(time.Second)}},
		{"leaky", "leaky_bucket", "capacity 1, refill 10/1s, queue 9", "10", "6.75", "2.25", "9", "3.25", "3.25", 0, api.Rate{Tokens: 10_000, Per: api.Seconds(time.Second)}},
		{"fixed", "fixed_window", "capacity 10, refill 10 every 1m0s", "10", "6.75", "0", "0", "3.25", "3.25", 0, api.Rate{Tokens: 10_000, Per: api.Seconds(time.Minute)}},
		{"sliding", "sliding_window", "10 in any 1m0s (sliding window)", "10", "6.75", "0", "0", "3.25", "3.25", 0, api.Rate{Tokens: 10_000, Per: api.Seconds(time.Minute)}},
		{"log", "sliding_log", "10 in any 1m0s (sliding log)", "10", "6.75", "0", "0", "3.25", "3.25", 0, api.Rate{Tokens: 10_000, Per: api.Seconds(time.Minute)}},
		{"split", "token_bucket", "capacity 8, refill 10/1s", "8", "4.75", "0", "0", "3.25", "3.25", 4, api.Rate{Tokens: 10_000, Per: api.Seconds(time.Second)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := freshBuckets(t)
			if status, text := b.ask("operate", "POST", "/v1/take", `{"attributes":{"query:user":"alice"},"cost":3.25}`, nil); status != http.StatusOK {
				t.Fatalf("take: %d %s", status, text)
			}
			key := tt.name + ":user=alice"
			x := b.bucket("operate", key)
			if x.Rule != tt.name || x.Limit != tt.name || x.Key != key || x.Masked || !slices.Equal(x.Parts, []api.KeyPart{{Name: "query:user", Value: "alice"}}) ||
				x.Algorithm != tt.algorithm || x.Words != tt.words || x.Shadow != (tt.name == "split") || !x.At.Equal(b.clock.read().Time()) {
				t.Errorf("%+v", x)
			}
			refill, anchor := "continuous", ""
			switch tt.name {
			case "fixed":
				refill, anchor = "interval", "key"
			case "sliding", "log":
				refill = "sliding"
			}
			if x.Refill != refill || x.Anchor != anchor || x.Start != 0 {
				t.Errorf("refills %q, from %q and %v", x.Refill, x.Anchor, x.Start)
			}
			if x.Capacity.String() != tt.capacity || x.Remaining.String() != tt.remaining || x.Owed.String() != tt.owed || x.Queue.String() != tt.queue || x.Shards != tt.shards || x.Rate != tt.rate || x.Cost.String() != "1" {
				t.Errorf("got %+v", x)
			}
			body := `{"key":"` + key + `","reason":"by mistake"}`
			var reset api.BucketReset
			if status, text := b.ask("operate", "POST", "/v1/bucket/reset", body, &reset); status != http.StatusOK || reset.Given.String() != tt.given || reset.Before.Remaining.String() != tt.remaining || reset.After.Remaining.String() != tt.capacity {
				t.Errorf("reset: %d %s", status, text)
			}
			if full := b.bucket("operate", key); full.Remaining.String() != tt.capacity || full.FullAfter != 0 {
				t.Errorf("after the reset: %+v", full)
			}
			var undone api.BucketTake
			if status, text := b.ask("operate", "POST", "/v1/bucket/take", `{"key":"`+key+`","tokens":`+reset.Given.String()+`}`, &undone); status != http.StatusOK || undone.Taken.String() != tt.retake {
				t.Errorf("take: %d %s", status, text)
			}
			if again := b.bucket("operate", key); again.Remaining.String() != tt.remaining {
				t.Errorf("after the undo: %+v", again)
			}
		})
	}
}

func TestBucket_Overrides(t *testing.T) {
	b := freshBuckets(t)
	if x := b.bucket("operate", "token:user=vip-customer"); x.Capacity.String() != "40" || x.Override == nil || x.Override.ID != "more" || x.Override.Key != "token:user=vip-customer" {
		t.Errorf("with another limit: %+v", x)
	}
	if x := b.bucket("operate", "log:user=bad-customer"); x.BlockedBy == nil || x.BlockedBy.ID != "gone" || x.AllowedBy != nil {
		t.Errorf("blocked: %+v", x)
	}
	if x := b.bucket("read", "log:user=bad-customer"); x.BlockedBy == nil || x.BlockedBy.Key != "log:…" {
		t.Errorf("blocked, and masked: %+v", x.BlockedBy)
	}
}

// A reader sees masked keys, may ask by them, and is never told whose they are.
func TestBucket_Masked(t *testing.T) {
	b := freshBuckets(t)
	take(t, b, 3, `{"header:x-api-key":"sesame-open","ip:address":"192.0.2.77","query:user":"carol-smith"}`)
	var top api.Top
	b.ask("read", "GET", "/v1/top", "", &top)
	if len(top.Keys) != 1 || !strings.HasPrefix(top.Keys[0].Key, "secret:~") {
		t.Fatalf("top: %+v", top.Keys)
	}
	masked := top.Keys[0].Key
	status, text := b.ask("read", "GET", "/v1/bucket?key="+url.QueryEscape(masked), "", nil)
	if status != http.StatusOK || strings.Contains(text, "192.0.2.77") {
		t.Errorf("a reader gets %d %s", status, text)
	}
	x := b.bucket("read", masked)
	if x.Key != masked || !x.Masked || x.Remaining.String() != "0" || x.Parts[1].Value != "192.0.2.0/24" {
		t.Errorf("a reader gets %+v", x)
	}
	y := b.bucket("operate", masked)
	if y.Masked || !strings.HasSuffix(y.Key, "|ip=192.0.2.77") || y.Remaining.String() != "0" {
		t.Errorf("an operator gets %+v", y)
	}
	if z := b.bucket("read", y.Key); z.Key != y.Key || z.Masked || z.Parts[1] != y.Parts[1] {
		t.Errorf("a reader who knows the key, and must not learn how it is masked, gets %+v", z)
	}
	if key, ok := b.Unmask(t.Context(), masked); !ok || key != y.Key {
		t.Errorf("unmasked: %q, %t", key, ok)
	}
	if status, text := b.ask("operate", "POST", "/v1/bucket/reset", `{"key":"`+masked+`","reason":"r"}`, nil); status != http.StatusOK {
		t.Errorf("reset of a masked key: %d %s", status, text)
	}
	list := b.audit.List()
	if len(list) != 1 || list[0].Key != y.Key || list[0].Reason != "r" || list[0].Status != http.StatusOK {
		t.Errorf("the audit has %+v, want the reset of %s", list, y.Key)
	}
	if log := b.log.String(); !strings.Contains(log, "key="+masked+" reason=r") || strings.Contains(log, "192.0.2.77") {
		t.Errorf("the log has not only the masked key:\n%s", log)
	}
	for _, other := range []string{"secret:~000000000000", "token:~000000000000", "nothing:~000000000000", ":~000000000000"} {
		if status, text := b.ask("operate", "GET", "/v1/bucket?key="+url.QueryEscape(other), "", nil); status != http.StatusNotFound || !strings.Contains(text, "of this server's top keys") {
			t.Errorf("%s: %d %s", other, status, text)
		}
	}
}

func TestBucket_BadRequests(t *testing.T) {
	b := freshBuckets(t)
	long := strings.Repeat("x", 10<<10)
	hostile := []string{`<script>alert(1)</script>`, "token:user=\x00", "token:user=\u202ea", "token:user=\xff", "#abc", "{", "{}", "{a}token:user=b", "token:user=a|#0", "|#", long, "token:user=" + long, "token:user=a\n", "%", "~"}
	for _, key := range hostile {
		status, text := b.ask("operate", "GET", "/v1/bucket?key="+url.QueryEscape(key), "", nil)
		if status != http.StatusNotFound || len(text) > 1000 || !json.Valid([]byte(text)) || strings.Contains(text, "<script>") {
			t.Errorf("%.40q: %d %.200s", key, status, text)
		}
		quoted, _ := json.Marshal(key)
		if status, text := b.ask("operate", "POST", "/v1/bucket/take", `{"key":`+string(quoted)+`,"tokens":1}`, nil); status != http.StatusNotFound || len(text) > 1000 {
			t.Errorf("take %.40q: %d %.200s", key, status, text)
		}
	}
	const key = `"key":"token:user=a"`
	for _, tt := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", "/v1/bucket", "", 400, "the key is missing"},
		{"GET", "/v1/bucket?key=token:user=a&rule=x", "", 400, `unknown parameter \"rule\"`},
		{"GET", "/v1/bucket?key=token:user=a&key=b", "", 400, "duplicate"},
		{"GET", "/v1/bucket?key=tokn:user=a", "", 404, `did you mean \"token\"?`},
		{"GET", "/v1/bucket/", "", 404, "no such endpoint"},
		{"POST", "/v1/bucket?key=token:user=a", "", 405, "takes GET, HEAD"},
		{"GET", "/v1/bucket/reset", "", 405, "takes POST"},
		{"POST", "/v1/bucket/reset", "", 400, "empty"},
		{"POST", "/v1/bucket/reset", `{}`, 400, "the key is missing"},
		{"POST", "/v1/bucket/reset", `{` + key + `}`, 400, "the reason is missing"},
		{"POST", "/v1/bucket/reset", `{` + key + `,"reason":""}`, 400, "the reason is missing"},
		{"POST", "/v1/bucket/reset", `{` + key + `,"reason":1}`, 400, "not a string"},
		{"POST", "/v1/bucket/reset", `{` + key + `,"reason":"` + long + `"}`, 400, "longer than 256"},
		{"POST", "/v1/bucket/reset", `{` + key + `,"reason":"r","tokens":1}`, 400, "unknown member"},
		{"POST", "/v1/bucket/reset", `{` + key + `,` + key + `,"reason":"r"}`, 400, "duplicate"},
		{"POST", "/v1/bucket/reset", `{` + key + `,"reason":"r"} {}`, 400, "unexpected text after"},
		{"POST", "/v1/bucket/reset", `{"key":7,"reason":"r"}`, 400, "not a string"},
		{"POST", "/v1/bucket/reset?x=1", `{` + key + `,"reason":"r"}`, 400, "unknown parameter"},
		{"POST", "/v1/bucket/reset", "{\"key\":\"\xff\"}", 400, "not UTF-8"},
		{"POST", "/v1/bucket/reset", `{"key":"` + strings.Repeat("x", 70<<10) + `"}`, 413, "64 KiB"},
		{"POST", "/v1/bucket/take", `{` + key + `}`, 400, "the amount is missing"},
		{"POST", "/v1/bucket/take", `{` + key + `,"tokens":0}`, 400, "tokens is 0"},
		{"POST", "/v1/bucket/take", `{` + key + `,"tokens":-1}`, 400, "negative"},
		{"POST", "/v1/bucket/take", `{` + key + `,"tokens":0.0001}`, 400, "0.0001"},
		{"POST", "/v1/bucket/take", `{` + key + `,"tokens":1e300}`, 400, "3 decimals"},
		{"POST", "/v1/bucket/take", `{` + key + `,"tokens":"1"}`, 400, "not a number"},
		{"POST", "/v1/bucket/take", `{` + key + `,"tokens":` + strings.Repeat("1", 100) + `}`, 400, "too many digits"},
	} {
		status, text := b.ask("operate", tt.method, tt.path, tt.body, nil)
		if status != tt.status || !strings.Contains(text, tt.want) {
			t.Errorf("%s %s %.60s\n got %d %.300s\nwant %d … %s", tt.method, tt.path, tt.body, status, text, tt.status, tt.want)
		}
	}
	if n := strings.Count(b.log.String(), " key="); n > 2*len(hostile)+10 {
		t.Errorf("the log has %d actions on buckets", n)
	}
}

func TestBucket_Roles(t *testing.T) {
	b := freshBuckets(t)
	for _, tt := range []struct {
		role, method, path, body string
		want                     int
	}{
		{"none", "GET", "/v1/bucket?key=token:user=a", "", 401},
		{"read", "GET", "/v1/bucket?key=token:user=a", "", 200},
		{"read", "POST", "/v1/bucket/reset", `{"key":"token:user=a","reason":"r"}`, 403},
		{"read", "POST", "/v1/bucket/take", `{"key":"token:user=a","tokens":1}`, 403},
		{"operate", "POST", "/v1/bucket/reset", `{"key":"token:user=a","reason":"r"}`, 200},
		{"operate", "POST", "/v1/bucket/take", `{"key":"token:user=a","tokens":1}`, 200},
		{"none", "GET", "/v1/activity", "", 401},
		{"read", "GET", "/v1/activity", "", 200},
		{"read", "GET", "/v1/activity?x=1", "", 400},
	} {
		if status, text := b.ask(tt.role, tt.method, tt.path, tt.body, nil); status != tt.want {
			t.Errorf("%s: %s %s: %d %s, want %d", tt.role, tt.method, tt.path, status, text, tt.want)
		}
	}
	public, _ := newAPI(t, perKey, httpapi.Config{})
	for _, path := range []string{"/v1/bucket", "/v1/bucket/reset", "/v1/bucket/take", "/v1/activity"} {
		if w := post(public, path, ""); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "admin address") {
			t.Errorf("%s where it is not served: %d %s", path, w.Code, w.Body)
		}
	}
	if w := do(b, "POST", "/v1/bucket/reset", `{}`, "Authorization", "Bearer operate", "Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"); w.Code != http.StatusForbidden {
		t.Errorf("a page of another origin: %d %s", w.Code, w.Body)
	}
}

func TestActivity(t *testing.T) {
	b := freshBuckets(t)
	r := httptest.NewRequest("POST", "/", nil)
	b.audit.Begin(r, "reload", "configure").End(http.StatusForbidden)
	reset := b.audit.Begin(r, "bucket/reset", "operate")
	reset.SetBucket("token:user=alice", "token:~000000000000", "r")
	reset.End(http.StatusOK)
	var all, masked api.Activities
	b.ask("operate", "GET", "/v1/activity", "", &all)
	b.ask("read", "GET", "/v1/activity", "", &masked)
	if all.Masked || len(all.Activity) != 2 || all.Activity[0].Key != "token:user=alice" || all.Activity[1].What != "reload" || all.Activity[1].Key != "" {
		t.Errorf("%+v", all)
	}
	if key := masked.Activity[0].Key; !masked.Masked || !strings.HasPrefix(key, "token:~") || len(key) != len("token:~0123456789ab") || masked.Activity[0].Reason != "r" {
		t.Errorf("masked: %+v", masked)
	}
	for key, want := range map[string]int{"token:user=alice": 1, "{alice}token:user=alice": 1, "token:user=bob": 0} {
		var about api.Activities
		b.ask("operate", "GET", "/v1/activity?"+url.Values{"key": {key}}.Encode(), "", &about)
		if len(about.Activity) != want {
			t.Errorf("of key %q: got %+v, want %d actions", key, about.Activity, want)
		}
	}
	if w := do(b, "GET", "/v1/activity?key=token:user=alice", "", "Authorization", "Bearer read"); w.Code != http.StatusForbidden {
		t.Errorf("of a key by role read: %d %s", w.Code, w.Body)
	}
	if _, err := httpapi.New(limiter(t, storetest.NewModel(newClock().read), perKey), httpapi.Config{Audit: b.audit}); err == nil {
		t.Error("an audit without Admin is not refused")
	}
}

// The store's error is not sent to the client.
func TestBucket_StoreFails(t *testing.T) {
	for _, spent := range []store.Spending{mete.NotSpent, mete.MaybeSpent} {
		b := newBuckets(t, brokenStore{spent}, newClock())
		for _, ask := range [][4]string{
			{"GET", "/v1/bucket?key=token:user=a", "", "try again later"},
			{"POST", "/v1/bucket/reset", `{"key":"token:user=a","reason":"r"}`, "resetting it again is safe"},
			{"POST", "/v1/bucket/take", `{"key":"token:user=a","tokens":1}`, "check the bucket before you retry"},
		} {
			status, text := b.ask("operate", ask[0], ask[1], ask[2], nil)
			want := ask[3]
			if spent == mete.NotSpent {
				want = "nothing was changed"
			}
			if status != http.StatusServiceUnavailable || strings.Contains(text, "192.0.2.7") || !strings.Contains(text, "the store") || !strings.Contains(text, want) {
				t.Errorf("%v: %d %s, want %q", ask, status, text, want)
			}
		}
	}
}
