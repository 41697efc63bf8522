// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/api"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/storetest"
	"github.com/metehq/mete/topkeys"
)

// topAPI counts the keys of a policy. A header sets the caller's role.
func topAPI(t *testing.T, rules string) (*httpapi.API, *clock) {
	t.Helper()
	c := newClock()
	m, err := policy.Load([]byte(rules), policy.Options{HashKey: []byte("k")})
	if err != nil {
		t.Fatal(err)
	}
	top, err := topkeys.New(topkeys.Config{}, c.read())
	if err != nil {
		t.Fatal(err)
	}
	lim, err := mete.New(storetest.NewModel(c.read), m, mete.Config{
		OnDenial:    func(_ context.Context, d *mete.Denial) { top.OnDenial(c.read(), d) },
		OnNearLimit: func(_ context.Context, d *mete.Denial) { top.OnNearLimit(c.read(), d) },
	})
	if err != nil {
		t.Fatal(err)
	}
	h, err := httpapi.New(lim, httpapi.Config{Admin: true, Top: httpapi.Top{Tracker: top, Now: c.read, MaskKey: []byte("m")}, Role: roleOfToken})
	if err != nil {
		t.Fatal(err)
	}
	return h, c
}

func take(t *testing.T, h http.Handler, times int, attributes string) {
	t.Helper()
	for range times {
		if w := do(h, "POST", "/v1/take", `{"attributes":`+attributes+`}`, "Authorization", "Bearer operate"); w.Code != 200 && w.Code != 429 {
			t.Fatalf("take %s: %d %s", attributes, w.Code, w.Body)
		}
	}
}

const topRules = `{"rules": [
	{"name": "trial", "mode": "shadow", "limit_keys": ["host"], "group": "t", "algorithm_config": {"rate": "1/1h", "burst": 1}},
	{"name": "free", "limit_keys": ["ip:address", "query:user"], "algorithm_config": {"rate": "1/1h", "burst": 5}},
	{"name": "never", "limit_keys": ["header:x-api-key"], "algorithm_config": {"rate": "1/1h", "burst": 1, "cost_source": "header:x-cost", "max_cost": 10}},
	{"name": "every/one", "limit_keys": [], "match": {"path": "/all"}, "algorithm_config": {"rate": "1/1h", "burst": 1}}]}`

func TestTop_ShowsKeys(t *testing.T) {
	h, c := topAPI(t, topRules)
	take(t, h, 7, `{"ip:address":"192.0.2.1","query:user":"Zoë|x"}`)
	take(t, h, 2, `{"path":"/all","host":"h"}`)
	take(t, h, 2, `{"header:x-api-key":"secret"}`)
	take(t, h, 1, `{"header:x-api-key":"secret2","header:x-cost":"5"}`)
	c.advance(time.Minute)
	const begin, now = "2023-11-14T22:13:20Z", "2023-11-14T22:14:20Z"
	const head = `{"kind":"denied","since":"` + begin + `","at":"` + now + `","counters":100,"masked":false,"total":%d,"dropped":0,"rules":%s,"rule_count":%d,"keys":%s}`
	for _, tt := range []struct{ query, want string }{
		{"?rule=free", fmt.Sprintf(head, 2, `[{"rule":"free","total":2,"dropped":0,"keys":1,"unlisted":0}]`, 1,
			`[{"rule":"free","limit":"free","key":"free:ip=192.0.2.1|user=Zo%C3%AB%7Cx","parts":[{"name":"ip:address","value":"192.0.2.1"},{"name":"query:user","value":"Zoë|x"}],`+
				`"count":2,"error":0,"first":"`+begin+`","last":"`+begin+`","retry_after":3540}]`)},
		{"?rule=every/one", fmt.Sprintf(head, 1, `[{"rule":"every/one","total":1,"dropped":0,"keys":1,"unlisted":0}]`, 1,
			`[{"rule":"every/one","limit":"every/one","key":"every/one:","parts":[],"count":1,"error":0,"first":"`+begin+`","last":"`+begin+`","retry_after":3540}]`)},
		{"?kind=near&rule=trial", strings.Replace(fmt.Sprintf(head, 0, `[{"rule":"trial","total":0,"dropped":0,"keys":0,"unlisted":0}]`, 1, `[]`), "denied", "near", 1)},
	} {
		if w := do(h, "GET", "/v1/top"+tt.query, "", "Authorization", "Bearer operate"); w.Code != 200 || strings.TrimSpace(w.Body.String()) != tt.want {
			t.Errorf("GET /v1/top%s at %s: %d %s\nwant %s", tt.query, now, w.Code, w.Body, tt.want)
		}
	}
	for query, want := range map[string]string{
		"":                     "free=2 never=1 never=1 every/one=1",
		"?limit=1":             "free=2",
		"?kind=denied&limit=3": "free=2 never=1 never=1",
		"?kind=shadow":         "",
		"?kind=near":           "free=2 every/one=1 never=1",
		"?window=30s":          "",
		"?window=1ms":          "",
	} {
		a := topOf(t, h, query, "configure")
		var got []string
		for _, k := range a.Keys {
			got = append(got, fmt.Sprintf("%s=%d", k.Rule, k.Count))
			if hash := strings.Contains(k.Key, "~"); k.Rule == "never" && (!hash || !k.Parts[0].Hashed) || strings.Contains(k.Key, "secret") {
				t.Errorf("%s: key %+v", query, k)
			}
		}
		if got := strings.Join(got, " "); got != want {
			t.Errorf("GET /v1/top%s: %s, want %s", query, got, want)
		}
	}
	waits := map[api.Seconds]int{}
	for _, k := range topOf(t, h, "?rule=never", "operate").Keys {
		waits[k.RetryAfter]++
	}
	if waits[api.Seconds(bucket.Never)] != 1 || waits[api.Seconds(59*time.Minute)] != 1 {
		t.Errorf("waits %v, want one that never ends, for a cost that never fits", waits)
	}
}

func topOf(t *testing.T, h http.Handler, query, role string) (a api.Top) {
	t.Helper()
	w := do(h, "GET", "/v1/top"+query, "", "Authorization", "Bearer "+role)
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil || w.Code != 200 {
		t.Fatalf("GET /v1/top%s: %d %s: %v", query, w.Code, w.Body, err)
	}
	return a
}

// The role read sees limits and networks, and can distinguish keys.
func TestTop_MasksKeys(t *testing.T) {
	h, c := topAPI(t, `{"rules": [{"name": "free", "limit_keys": ["ip:address", "query:user", "header:x-api-key"], "on_missing": "empty", "algorithm_config": {"rate": "1/1h", "burst": 1}}]}`)
	take(t, h, 4, `{"ip:address":"192.0.2.77","query:user":"alexander","header:x-api-key":"secret"}`)
	take(t, h, 3, `{"ip:address":"2001:db8:1:2::3","query:user":"kim","header:x-api-key":"secret"}`)
	take(t, h, 2, `{"query:user":"日本語の名前"}`)
	c.advance(time.Second)
	a := topOf(t, h, "", "read")
	var got []string
	for _, k := range a.Keys {
		if !strings.HasPrefix(k.Key, "free:~") || len(k.Key) != len("free:~")+12 {
			t.Errorf("masked key %q", k.Key)
		}
		got = append(got, k.Parts[0].Value+" "+k.Parts[1].Value)
	}
	want := []string{"192.0.2.0/24 al…", "2001:db8:1::/48 …", " 日本…"}
	if !a.Masked || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("masked %v: %q, want %q", a.Masked, got, want)
	}
	if text := fmt.Sprint(a); strings.Contains(text, "192.0.2.77") || strings.Contains(text, "alexander") || strings.Contains(text, "kim") || strings.Contains(text, "secret") {
		t.Errorf("there is a key in %s", text)
	}
	if again := topOf(t, h, "?limit=1", "read"); again.Keys[0].Key != a.Keys[0].Key || a.Keys[0].Key == a.Keys[1].Key {
		t.Errorf("masked keys %q and %q, again %q", a.Keys[0].Key, a.Keys[1].Key, again.Keys[0].Key)
	}
}

func TestTop_Refuses(t *testing.T) {
	h, _ := topAPI(t, topRules)
	for query, want := range map[string]string{
		"?rule=fre":             `404 no rule is named \"fre\"; did you mean \"free\"?`,
		"?kind=all":             `400 kind \"all\": must be denied`,
		"?limit=0":              `400 limit is the number of keys`,
		"?limit=1001":           `400 limit is the number of keys`,
		"?limit=x":              `400 limit is the number of keys`,
		"?window=2m":            `400 window is the time range; send a duration above 0 and up to 1m`,
		"?window=-1s":           `400 window is the time range`,
		"?window=1":             `400 window is the time range`,
		"?top=1":                `400 unknown parameter \"top\"`,
		"?rule=free&rule=trial": `400 duplicate parameter \"rule\"`,
	} {
		w := do(h, "GET", "/v1/top"+query, "", "Authorization", "Bearer configure")
		if got := fmt.Sprint(w.Code, " ", w.Body); !strings.HasPrefix(got, want[:3]) || !strings.Contains(got, want[4:]) {
			t.Errorf("GET /v1/top%s: %s, want %s", query, got, want)
		}
	}
	if w := do(h, "POST", "/v1/top", "{}", "Authorization", "Bearer configure"); w.Code != 405 {
		t.Errorf("POST /v1/top: %d", w.Code)
	}
	plain, _ := newAPI(t, perKey, httpapi.Config{Admin: true})
	if w := do(plain, "GET", "/v1/top", ""); w.Code != 404 || !strings.Contains(w.Body.String(), "top keys are shown only at the admin address") {
		t.Errorf("where keys are not counted: %d %s", w.Code, w.Body)
	}
}

// Keys of removed rules and keys that no rule produces are shown as they are.
func TestTop_ForeignKeys(t *testing.T) {
	c := newClock()
	top, err := topkeys.New(topkeys.Config{}, c.read())
	if err != nil {
		t.Fatal(err)
	}
	keys := []string{"{acme}old:tenant=acme|path=/v1", "", "no colon", "old:", "x:a", "x:a=%", "x:a=%ZZ%41", "x:a=%FF", "x:" + strings.Repeat("a", 500), "\x1b[2J:\x00=\x07"}
	for _, key := range keys {
		top.Record(c.read(), topkeys.KindDenied, "old", key, 0)
	}
	h, err := httpapi.New(limiter(t, storetest.NewModel(c.read), perKey), httpapi.Config{Admin: true, Top: httpapi.Top{Tracker: top, Now: c.read}})
	if err != nil {
		t.Fatal(err)
	}
	a := topOf(t, h, "", "")
	if len(a.Keys) != len(keys) {
		t.Fatalf("%d keys, want %d: %+v", len(a.Keys), len(keys), a.Keys)
	}
	for _, k := range a.Keys {
		if k.Key == keys[0] && (k.Limit != "old" || fmt.Sprint(k.Parts) != "[{tenant acme false} {path /v1 false}]") {
			t.Errorf("%q: %+v", k.Key, k)
		}
		if k.Cut != (len(k.Key) == topkeys.MaxKeyBytes) {
			t.Errorf("%q: cut %v", k.Key, k.Cut)
		}
	}
}
