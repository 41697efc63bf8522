// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/api"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/storetest"
)

// A take answers with a slot, which renew and release accept at the same address.
func TestSlots(t *testing.T) {
	c := newClock()
	m, err := policy.Load([]byte(`{"rules": [{"name": "jobs", "limit_keys": ["query:tenant"], "algorithm": "concurrency", "max": 1, "lease": "30s"}]}`), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	lim, err := mete.New(storetest.NewModel(c.read), m, mete.Config{Now: c.read})
	if err != nil {
		t.Fatal(err)
	}
	h, err := httpapi.New(lim, httpapi.Config{})
	if err != nil {
		t.Fatal(err)
	}
	body := func(slot string) string { return `{"attributes":{"query:tenant":"acme"}` + slot + `}` }
	take := func() (d api.Decision) {
		t.Helper()
		w := post(h, "/v1/take", body(""))
		if err := json.Unmarshal(w.Body.Bytes(), &d); err != nil || w.Code != http.StatusOK {
			t.Fatal(w.Code, w.Body, err)
		}
		return d
	}
	d := take()
	if !d.Allowed || len(d.Slot) != 32 || d.Lease != api.Seconds(30*time.Second) || d.Limits[0].Remaining != 0 {
		t.Fatalf("got %+v, want a slot with a lease of 30 s", d)
	}
	if denied := take(); denied.Allowed || denied.Slot != "" || denied.Reason != "concurrency_exceeded" {
		t.Errorf("a second take: %+v", denied)
	}
	slot := `,"slot":"` + d.Slot + `"`
	c.advance(29 * time.Second)
	wantAnswer(t, h, "/v1/slots/renew", body(slot), 200, `{"held":true,"lease":30}`)
	c.advance(29 * time.Second)
	wantAnswer(t, h, "/v1/slots/renew", `{"requests":[`+body(slot)+`]}`, 200, `{"responses":[{"held":true,"lease":30}]}`)
	wantAnswer(t, h, "/v1/slots/release", body(slot), 200, `{}`)
	wantAnswer(t, h, "/v1/slots/release", body(slot), 200, `{}`)
	wantAnswer(t, h, "/v1/slots/renew", body(slot), 200, `{"held":false}`)
	if !take().Allowed {
		t.Error("the slot was not released")
	}
	for wrong, want := range map[string]string{
		body(""):                        "is missing",
		body(`,"slot":"x"`):             "32 hexadecimal digits",
		body(`,"slot":7`):               "not a string",
		`{"attributes":{}` + slot + `}`: "no concurrency limit applies",
	} {
		for _, path := range []string{"/v1/slots/renew", "/v1/slots/release"} {
			if w := post(h, path, wrong); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), want) {
				t.Errorf("POST %s %s: %d %s, want %q", path, wrong, w.Code, w.Body, want)
			}
		}
	}
}

// The bucket of a key lists the slots that are held. Callers without the role operate cannot release them.
func TestSlots_InBucket(t *testing.T) {
	c := newClock()
	m, err := policy.Load([]byte(`{"rules": [{"name": "jobs", "limit_keys": ["query:tenant"], "algorithm": "concurrency", "max": 200, "lease": "30s"}]}`), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	held, err := memstore.New(memstore.Config{Now: c.read})
	if err != nil {
		t.Fatal(err)
	}
	lim, err := mete.New(held, m, mete.Config{Now: c.read})
	if err != nil {
		t.Fatal(err)
	}
	h, err := httpapi.New(lim, httpapi.Config{Admin: true, Role: roleOfToken})
	if err != nil {
		t.Fatal(err)
	}
	const most = 100
	var taken []string
	take := func() {
		t.Helper()
		d, err := lim.Take(t.Context(), mete.Request{Attributes: mete.Attrs{"query:tenant": "acme"}})
		if err != nil || !d.Allowed {
			t.Fatalf("%+v, error %v", d, err)
		}
		taken = append(taken, d.Slots.ID().String())
	}
	read := func(role, key string) (b api.Bucket) {
		t.Helper()
		w := do(h, "GET", "/v1/bucket?key="+key, "", "Authorization", "Bearer "+role)
		if err := json.Unmarshal(w.Body.Bytes(), &b); err != nil || w.Code != http.StatusOK {
			t.Fatal(w.Code, w.Body, err)
		}
		return b
	}
	if w := do(h, "GET", "/v1/bucket?key=jobs:tenant=acme", "", "Authorization", "Bearer read"); strings.Contains(w.Body.String(), `"slots"`) {
		t.Errorf("no slot is held: %s", w.Body)
	}
	take()
	c.advance(10 * time.Second)
	take()
	want := []api.Slot{{ID: taken[0], Left: api.Seconds(20 * time.Second)}, {ID: taken[1], Left: api.Seconds(30 * time.Second)}}
	if got := read("operate", "jobs:tenant=acme").Slots; !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	want[0].ID, want[1].ID = want[0].ID[:8], want[1].ID[:8]
	if got := read("read", "jobs:tenant=acme").Slots; !slices.Equal(got, want) {
		t.Errorf("the role read got %+v, want %+v", got, want)
	}
	for range most {
		take()
	}
	if got := read("operate", "jobs:tenant=acme").Slots; len(got) != most || got[0].ID != taken[0] {
		t.Errorf("got %d slots, want %d that begin with %s", len(got), most, taken[0])
	}
}
