// SPDX-License-Identifier: Apache-2.0

package overrides_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete/overrides"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

// resetOf is that a bucket was reset.
func resetOf(key string) overrides.Entry {
	return overrides.Entry{Kind: overrides.EntryReset, Key: key, Tokens: "1.5", Author: "kim", Role: "operate", From: "192.0.2.1", Reason: "by mistake"}
}

func (n *node) note(e overrides.Entry) overrides.Entry {
	n.t.Helper()
	noted, err := n.Note(n.t.Context(), e)
	if err != nil {
		n.t.Fatalf("Note(%+v): %v", e, err)
	}
	return noted
}

// stored returns the document in the store.
func stored(t *testing.T, s store.Documents) (data []byte, revision int64) {
	t.Helper()
	data, revision, err := s.Document(t.Context(), overrides.DefaultName, 0)
	if err != nil {
		t.Fatal(err)
	}
	return data, revision
}

// All processes see an act on a bucket, including processes that start later. It does not affect the overrides.
func TestNote(t *testing.T) {
	c := newClock()
	kept := newStore(t, c)
	a, b := newNode(t, c, kept, rules), newNode(t, c, kept, rules)
	a.put(block("b", "bad"))
	b.refresh()
	c.advance(time.Minute)
	noted := a.note(resetOf("free:x-api-key=canary"))
	want := resetOf("free:x-api-key=canary")
	want.ID, want.At = noted.ID, c.now()
	if noted.ID == "" || noted != want {
		t.Errorf("noted %+v, want %+v", noted, want)
	}
	b.refresh()
	later := newNode(t, c, kept, rules)
	later.refresh()
	for name, n := range map[string]*node{"who did it": a, "another": b, "one that begins later": later} {
		audit := n.Audit()
		if len(audit) != 2 || audit[0].Kind != overrides.EntryMade || audit[1] != want {
			t.Errorf("%s has %+v, want that it was made, and %+v", name, audit, want)
		}
		n.wantTakes(name, "bad", false)
		if log := n.log.String(); strings.Contains(log, "canary") || strings.Contains(log, want.ID) {
			t.Errorf("%s logs what was no change of an override:\n%s", name, log)
		}
	}
	if err := later.Remove(t.Context(), "b", "lee", "over"); err != nil {
		t.Fatal(err)
	}
	a.refresh()
	if audit := a.Audit(); len(audit) != 3 || audit[1] != want {
		t.Errorf("after a change by another: %+v", audit)
	}
	a.wantTakes("removed", "bad", true)
}

// A note does not activate the policy again.
func TestNote_AppliesNothing(t *testing.T) {
	var applied atomic.Int64
	c := newClock()
	kept := newStore(t, c)
	newManager := func() *overrides.Manager {
		m, err := overrides.New(load(t, rules), overrides.Config{Documents: kept, Now: c.instant, Apply: func(*policy.Matcher) error {
			applied.Add(1)
			return nil
		}})
		if err == nil {
			err = m.Load(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	a, b := newManager(), newManager()
	o := block("b", "bad")
	o.Reason, o.Author, o.ExpiresAt = "r", "a", c.now().Add(time.Hour)
	if _, err := a.Put(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if err := b.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := applied.Load()
	for range 3 {
		if _, err := a.Note(t.Context(), resetOf("free:x-api-key=k")); err != nil {
			t.Fatal(err)
		}
		if err := b.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := applied.Load() - before; got != 0 || len(b.Audit()) != 4 {
		t.Errorf("a policy was put in force %d times, and there are %d entries; want none, and 4", got, len(b.Audit()))
	}
}

// A version from before acts expects an override before or after in each entry. It writes back only the fields
// that it knows.
func TestNote_OlderVersion(t *testing.T) {
	type older struct {
		ID       string           `json:"id"`
		At       time.Time        `json:"at"`
		What     string           `json:"what"`
		Override string           `json:"override"`
		Author   string           `json:"author"`
		Reason   string           `json:"reason"`
		Before   *policy.Override `json:"before,omitempty"`
		After    *policy.Override `json:"after,omitempty"`
	}
	var d struct {
		Version   int             `json:"version"`
		Overrides json.RawMessage `json:"overrides"`
		Audit     []older         `json:"audit"`
	}
	c := newClock()
	kept := newStore(t, c)
	a := newNode(t, c, kept, rules)
	a.put(block("b", "bad"))
	done := a.note(resetOf("free:x-api-key=canary"))
	data, revision := stored(t, kept)
	if err := json.Unmarshal(data, &d); err != nil || d.Version != 1 || len(d.Audit) != 2 {
		t.Fatalf("it cannot be read: %v, %s", err, data)
	}
	for _, e := range d.Audit {
		if e.Before == nil && e.After == nil || strings.Contains(e.Override, "canary") {
			t.Errorf("%+v: there must be an override, and the key must be where it is masked", e)
		}
	}
	if strings.Count(string(data), "canary") != 1 {
		t.Errorf("the key is not there once, where older versions mask it: %s", data)
	}
	d.Audit = append(d.Audit, older{ID: "old", At: c.now(), What: "removed", Override: "x", Author: "lee", Reason: "over", Before: &policy.Override{ID: "x"}})
	data, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	mustSet(t, kept, data, revision)
	want := done
	want.Tokens, want.Role, want.From = "", "", ""
	later := newNode(t, c, kept, rules)
	later.refresh()
	a.refresh()
	for _, n := range []*node{a, later} {
		if audit := n.Audit(); len(audit) != 3 || audit[1] != want || audit[2].ID != "old" {
			t.Errorf("%+v, want %+v and the others", audit, want)
		}
	}
}

// Entries of later versions may have an unknown form.
func TestNote_LaterVersion(t *testing.T) {
	c := newClock()
	kept := newStore(t, c)
	n := newNode(t, c, kept, rules)
	n.put(block("b", "bad"))
	_, revision := stored(t, kept)
	mustSet(t, kept, []byte(`{"version": 1, "overrides": [], "audit": [{"id": "new", "what": "painted", "author": "kim"}, {"id": "bare", "what": "reset"}]}`), revision)
	n.refresh()
	if audit := n.Audit(); len(audit) != 2 || audit[0].Kind != "painted" || audit[1].Key != "" {
		t.Errorf("%+v", audit)
	}
	n.wantTakes("it is not there any more", "bad", true)
}

// Many note something at once, while others change overrides, and nothing is lost.
func TestNote_AtOnce(t *testing.T) {
	const nodes, each = 3, 12
	c := newClock()
	kept := newStore(t, c)
	var all sync.WaitGroup
	for i := range nodes {
		n := newNode(t, c, kept, rules)
		for j := range each {
			all.Go(func() {
				if _, err := n.Note(t.Context(), resetOf(fmt.Sprintf("free:x-api-key=n%d-%d", i, j))); err != nil {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	n := newNode(t, c, kept, rules)
	n.refresh()
	keys := map[string]bool{}
	for _, e := range n.Audit() {
		keys[e.Key] = true
	}
	if len(n.Audit()) != nodes*each || len(keys) != nodes*each {
		t.Errorf("%d entries of %d keys, want %d", len(n.Audit()), len(keys), nodes*each)
	}
}

// Acts on buckets do not displace changes of overrides.
func TestNote_Bound(t *testing.T) {
	c := newClock()
	kept := newStore(t, c)
	entries := []overrides.Entry{{ID: "first", Kind: overrides.EntryRemoved, Before: &policy.Override{ID: "x"}, Reason: "r"}}
	for i := range overrides.MaxActs {
		entries = append(entries, overrides.Entry{ID: fmt.Sprint("e", i), Kind: overrides.EntryTaken, Before: &policy.Override{Key: fmt.Sprint("k", i)}})
	}
	data, err := json.Marshal(map[string]any{"version": 1, "audit": entries})
	if err != nil {
		t.Fatal(err)
	}
	mustSet(t, kept, data, 0)
	n := newNode(t, c, kept, rules)
	n.refresh()
	for i := range 3 {
		n.note(resetOf(fmt.Sprint("new", i)))
	}
	n.put(block("b", "k"))
	audit := n.Audit()
	if len(audit) != overrides.MaxActs+2 || audit[0].ID != "first" || audit[1].Key != "k3" || audit[overrides.MaxActs].Key != "new2" {
		t.Errorf("%d entries, %+v, %+v; want the last %d acts, and all others", len(audit), audit[0], audit[1], overrides.MaxActs)
	}
}

func TestNote_RefusesMistakes(t *testing.T) {
	n := newNode(t, newClock(), nil, rules)
	for path, spoil := range map[string]func(*overrides.Entry){
		"/what":     func(e *overrides.Entry) { e.Kind = overrides.EntryMade },
		"/override": func(e *overrides.Entry) { e.Before = &policy.Override{} },
		"/tokens":   func(e *overrides.Entry) { e.Tokens = "0" },
		"/key":      func(e *overrides.Entry) { e.Key = "" },
		"/author":   func(e *overrides.Entry) { e.Author = strings.Repeat("x", 129) },
		"/reason":   func(e *overrides.Entry) { e.Reason = strings.Repeat("x", 257) },
		"/from":     func(e *overrides.Entry) { e.From = strings.Repeat("x", 129) },
	} {
		e := resetOf("k")
		spoil(&e)
		_, err := n.Note(t.Context(), e)
		if wrong, ok := errors.AsType[policy.Errors](err); !ok || len(wrong) != 1 || wrong[0].Path != path {
			t.Errorf("%s: %v", path, err)
		}
	}
	if len(n.Audit()) != 0 {
		t.Errorf("%+v", n.Audit())
	}
}

// A note that cannot be written is told, with what tells it apart.
func TestNote_StoreFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClock()
		kept := &faulty{Documents: newStore(t, c)}
		n := newNode(t, c, kept, rules)
		n.put(block("b", "bad"))
		try := func(want error) overrides.Entry {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			e, err := n.Note(ctx, resetOf("k"))
			if !errors.Is(err, want) || e.ID == "" || e.Key != "k" {
				t.Errorf("%+v, %v; want %v", e, err, want)
			}
			return e
		}
		kept.fail(errIll, nil, nil)
		try(errIll)
		kept.fail(nil, errIll, nil)
		try(errIll)
		kept.fail(nil, store.ErrRevision, nil) // others are faster, as long as it may wait
		try(store.ErrRevision)
		if audit := n.Audit(); len(audit) != 1 {
			t.Errorf("%+v, want none of them", audit)
		}
		kept.fail(nil, nil, errIll) // it is written, and the answer is lost
		written := try(nil)
		if audit := n.Audit(); len(audit) != 2 || audit[1].ID != written.ID {
			t.Errorf("%+v, want it once", audit)
		}
		n.wantTakes("all the while", "bad", false)
	})
}
