// SPDX-License-Identifier: Apache-2.0

package overrides_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/overrides"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

// A faulty store fails where it is told to.
type faulty struct {
	store.Documents
	mu     sync.Mutex // guards the fields below
	read   error      // of the reads
	before error      // of writes that are not made
	after  error      // of writes that are
}

func (f *faulty) fail(read, before, after error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.read, f.before, f.after = read, before, after
}

func (f *faulty) Document(ctx context.Context, name string, known int64) ([]byte, int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.read != nil {
		return nil, 0, f.read
	}
	return f.Documents.Document(ctx, name, known)
}

func (f *faulty) SetDocument(ctx context.Context, name string, data []byte, revision int64) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.before != nil {
		return 0, f.before
	}
	next, err := f.Documents.SetDocument(ctx, name, data, revision)
	if f.after != nil && err == nil {
		err, f.after = f.after, nil // once
		return 0, err
	}
	return next, err
}

var errIll = errors.New("the store is ill")

func TestShared(t *testing.T) {
	c := newClock()
	kept := newStore(t, c)
	a, b := newNode(t, c, kept, rules), newNode(t, c, kept, rules)
	a.put(block("b", "bad"))
	b.wantTakes("before it looks", "bad", true)
	b.refresh()
	b.wantTakes("after it looked", "bad", false)
	b.put(block("c", "worse"))
	if err := b.Remove(t.Context(), "b", "lee", "all is well"); err != nil {
		t.Fatal(err)
	}
	a.refresh()
	a.wantTakes("removed elsewhere", "bad", true)
	a.wantTakes("made elsewhere", "worse", false)
	if !strings.Contains(a.log.String(), `msg="override removed" id=b action=block`) || !strings.Contains(a.log.String(), "author=lee") {
		t.Errorf("what another has done is not logged:\n%s", a.log)
	}
	later := newNode(t, c, kept, rules)
	later.refresh()
	later.wantTakes("after a restart", "worse", false)
	if got := later.Audit(); len(got) != 3 || got[2].Kind != overrides.EntryRemoved || got[2].Author != "lee" || got[2].Before == nil || got[2].After != nil {
		t.Errorf("audit %+v, want three entries, the last a removal by lee", got)
	}
	if !strings.Contains(later.log.String(), `msg="overrides active" ids=c`) {
		t.Errorf("what is in force is not logged:\n%s", later.log)
	}
}

// Many change something at once, and nothing is lost.
func TestShared_AtOnce(t *testing.T) {
	const nodes, each = 4, 10
	c := newClock()
	kept := newStore(t, c)
	var all sync.WaitGroup
	for i := range nodes {
		n := newNode(t, c, kept, rules)
		all.Go(func() {
			for j := range each {
				o := block(fmt.Sprintf("n%d-%d", i, j), fmt.Sprintf("k%d-%d", i, j))
				o.Reason, o.Author, o.ExpiresAt = "test", "kim", c.now().Add(time.Hour)
				for {
					_, err := n.Put(context.Background(), o)
					if err == nil {
						break
					}
					if !errors.Is(err, store.ErrRevision) {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	all.Wait()
	n := newNode(t, c, kept, rules)
	n.refresh()
	if got := len(n.List()); got != nodes*each || len(n.Audit()) != nodes*each {
		t.Errorf("%d overrides, %d entries, want %d of each", got, len(n.Audit()), nodes*each)
	}
}

// A request is decided by the overrides before a change or by the overrides after it, never by a mix.
func TestPut_WhileRequestsAreDecided(t *testing.T) {
	c := newClock()
	n := newNode(t, c, nil, rules)
	stop := make(chan struct{})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				d, err := n.limiter.Peek(context.Background(), mete.Request{Attributes: mete.Attrs{"header:x-api-key": "k"}})
				if err != nil || len(d.Limits()) != 2 {
					t.Errorf("%+v, %v; want two limits", d, err)
					return
				}
				l := d.Limits()[0]
				if with := l.Limit.Override != nil; with != (l.Snapshot.Limit.Capacity() == 4000) || with != (l.Room() == 4000) {
					t.Errorf("capacity %v, %v remaining, override %t: want all of one policy", l.Snapshot.Limit.Capacity(), l.Room(), with)
					return
				}
			}
		})
	}
	for range 50 {
		n.put(raise("l", "k"))
		if err := n.Remove(t.Context(), "l", "kim", "over"); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	all.Wait()
}

func TestStore_Fails(t *testing.T) {
	c := newClock()
	kept := &faulty{Documents: newStore(t, c)}
	n := newNode(t, c, kept, rules)
	n.put(block("b", "bad"))
	kept.fail(errIll, nil, nil)
	if err := n.Load(t.Context()); !errors.Is(err, errIll) {
		t.Errorf("Load: %v, want %v", err, errIll)
	}
	o := n.List()[0].Override
	if _, err := n.Put(t.Context(), o); !errors.Is(err, errIll) {
		t.Errorf("Put: %v, want %v", err, errIll)
	}
	n.wantTakes("what was read last stays", "bad", false)
	if err := n.SetBase(load(t, rules)); err != nil {
		t.Errorf("a reload without the store: %v", err)
	}
	n.wantTakes("after a reload", "bad", false)

	kept.fail(nil, errIll, nil)
	if err := n.Remove(t.Context(), "b", "kim", "over"); !errors.Is(err, errIll) {
		t.Errorf("Remove that is not written: %v, want %v", err, errIll)
	}
	n.wantTakes("not removed", "bad", false)

	kept.fail(nil, nil, errIll) // it is written, and the answer is lost
	if err := n.Remove(t.Context(), "b", "kim", "over"); err != nil {
		t.Errorf("Remove whose answer is lost: %v", err)
	}
	n.wantTakes("removed", "bad", true)
	if got := n.Audit(); len(got) != 2 {
		t.Errorf("%d entries, want 2: one for each change", len(got))
	}
}

// Others are faster, again and again.
func TestStore_Overtaken(t *testing.T) {
	c := newClock()
	n := newNode(t, c, &faulty{Documents: newStore(t, c), before: store.ErrRevision}, rules)
	o := block("b", "bad")
	o.Reason, o.Author, o.ExpiresAt = "r", "a", c.now().Add(time.Hour)
	if _, err := n.Put(t.Context(), o); !errors.Is(err, store.ErrRevision) {
		t.Errorf("Put: %v, want %v", err, store.ErrRevision)
	}
	if got := len(n.List()); got != 0 {
		t.Errorf("%d overrides, want none", got)
	}
}

// A document that goes back to an earlier revision, as it does where a failover loses
// the last writes.
type fragile struct {
	mu       sync.Mutex // guards the fields below
	data     []byte
	revision int64
	clock    int64
}

func (f *fragile) Document(context.Context, string, int64) ([]byte, int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.data, f.revision, nil
}

func (f *fragile) SetDocument(_ context.Context, _ string, data []byte, revision int64) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.revision != revision {
		return 0, store.ErrRevision
	}
	f.clock += 10 // as good as never does it stand still between two changes
	f.data, f.revision = data, max(revision+1, f.clock)
	return f.revision, nil
}

// A manager that knows the document writes it back once after the store has lost it.
func TestStore_Loses(t *testing.T) {
	for _, clock := range []int64{1000, 0} { // the store's after the loss: it may have gone back, too
		for i := range 4 {
			all, changed := i&1 == 0, i&2 == 0 // what is lost; there is a change before it is noticed
			c := newClock()
			kept := &fragile{clock: 500}
			a, b := newNode(t, c, kept, rules), newNode(t, c, kept, rules)
			a.put(block("b", "bad"))
			early, revision := kept.data, kept.revision
			a.put(block("c", "worse"))
			b.refresh()
			if all {
				early, revision = nil, 0
			}
			kept.data, kept.revision, kept.clock = early, revision, clock
			if !changed {
				for range 3 {
					a.refresh()
					b.refresh()
				}
			}
			a.put(block("d", "worst"))
			b.refresh()
			b.refresh()
			later := newNode(t, c, kept, rules)
			later.refresh()
			for _, n := range []*node{a, b, later} {
				for _, key := range []string{"bad", "worse", "worst"} {
					n.wantTakes(fmt.Sprintf("all %t was lost, changed %t, clock %d", all, changed, clock), key, false)
				}
			}
			if said := strings.Count(a.log.String()+b.log.String(), "written back"); said != 1 && !changed || said > 0 && changed {
				t.Errorf("it was written back %d times, want once, and not where a change did so: %t", said, changed)
			}
		}
	}
}

func mustSet(t *testing.T, s store.Documents, data []byte, revision int64) {
	t.Helper()
	if _, err := s.SetDocument(t.Context(), overrides.DefaultName, data, revision); err != nil {
		t.Fatal(err)
	}
}

// An unreadable document is not overwritten.
func TestStore_Garbage(t *testing.T) {
	for _, text := range []string{"", "{", "[]", `{"version": 0}`, `{"version": 2, "overrides": []}`, `{"overrides": 1, "version": 1}`} {
		c := newClock()
		kept := newStore(t, c)
		mustSet(t, kept, []byte(text), 0)
		n := newNode(t, c, kept, rules)
		if err := n.Load(t.Context()); err == nil {
			t.Errorf("Load of %q: no error", text)
		}
		o := block("b", "bad")
		o.Reason, o.Author, o.ExpiresAt = "r", "a", c.now().Add(time.Hour)
		if _, err := n.Put(t.Context(), o); err == nil {
			t.Errorf("Put over %q: no error", text)
		}
		if data, _, err := kept.Document(t.Context(), overrides.DefaultName, 0); string(data) != text || err != nil {
			t.Errorf("%q has become %q, %v", text, data, err)
		}
	}
}

// unsupported stands between, and has nothing behind it.
type unsupported struct{}

func (unsupported) Document(context.Context, string, int64) ([]byte, int64, error) {
	return nil, 0, fmt.Errorf("wrapped: %w", errors.ErrUnsupported)
}
func (unsupported) SetDocument(context.Context, string, []byte, int64) (int64, error) {
	return 0, errors.ErrUnsupported
}

func TestStore_KeepsNoDocuments(t *testing.T) {
	n := newNode(t, newClock(), unsupported{}, rules)
	n.put(block("b", "bad"))
	n.wantTakes("in the process alone", "bad", false)
	if n.IsPersistent() || !strings.Contains(n.log.String(), "not persistent") {
		t.Errorf("persistent %t; the log should say that it is not:\n%s", n.IsPersistent(), n.log)
	}
}

func TestBounds(t *testing.T) {
	c := newClock()
	kept := newStore(t, c)
	n := newNode(t, c, kept, rules)
	paths, err := json.Marshal(slices.Repeat([]string{"/" + strings.Repeat("x", 1000)}, 60))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 60 { // each once
		paths = bytes.Replace(paths, []byte(`"/xx`), fmt.Appendf(nil, `"/%02d`, i), 1)
	}
	fat := func(id string) policy.Override {
		return policy.Override{ID: id, Action: policy.ActionBlock, Match: fmt.Appendf(nil, `{"path": %s}`, paths),
			Reason: "r", Author: "a", ExpiresAt: c.now().Add(time.Hour)}
	}
	full := false
	for i := 0; i < 100 && !full; i++ {
		_, err := n.Put(t.Context(), fat(fmt.Sprint("fat", i)))
		if full = errors.Is(err, overrides.ErrFull); err != nil && !full {
			t.Fatal(err)
		}
	}
	if got := len(n.List()); !full || got < 7 {
		t.Errorf("full after %d overrides of 60 KB: %t", got, full)
	}
	for i := range 12 { // what is remembered of them has no room
		o := fat("fat0")
		o.Reason = fmt.Sprint(i)
		n.put(o)
	}
	data, _, err := kept.Document(t.Context(), overrides.DefaultName, 0)
	audit := n.Audit()
	if err != nil || len(audit) == 0 || audit[len(audit)-1].Reason != "11" || len(audit) > 12 {
		t.Errorf("%d bytes, %d entries, %v; want the last ones", len(data), len(audit), err)
	}

}

func TestBounds_Entries(t *testing.T) {
	c := newClock()
	kept := newStore(t, c)
	var entries []overrides.Entry
	for i := range overrides.MaxEntries {
		entries = append(entries, overrides.Entry{ID: fmt.Sprint("e", i), Kind: overrides.EntryRemoved, Reason: fmt.Sprint(i)})
	}
	data, err := json.Marshal(map[string]any{"version": 1, "audit": entries})
	if err != nil {
		t.Fatal(err)
	}
	mustSet(t, kept, data, 0)
	n := newNode(t, c, kept, rules)
	n.refresh()
	for range 5 {
		n.put(block("b", "k"))
	}
	if audit := n.Audit(); len(audit) != overrides.MaxEntries || audit[0].Reason != "5" {
		t.Errorf("%d entries, the first %q; want the last %d", len(audit), audit[0].Reason, overrides.MaxEntries)
	}
}

func TestBounds_Many(t *testing.T) {
	c := newClock()
	kept := newStore(t, c)
	var records []any
	for i := range policy.MaxOverrides + 2 {
		o := block(fmt.Sprint("b", i), fmt.Sprint("k", i))
		o.Reason, o.Author, o.ExpiresAt = "r", "a", c.now().Add(time.Hour)
		records = append(records, o)
	}
	data, err := json.Marshal(map[string]any{"version": 1, "overrides": records})
	if err != nil {
		t.Fatal(err)
	}
	mustSet(t, kept, data, 0)
	n := newNode(t, c, kept, rules)
	n.refresh()
	unfit := 0
	for _, s := range n.List() {
		if s.State == overrides.StateUnfit {
			unfit++
		}
	}
	if unfit != 2 {
		t.Errorf("%d of %d do not fit, want the last 2", unfit, len(n.List()))
	}
	n.wantTakes("the first", "k0", false)
	n.wantTakes("the last that fits", "k999", false)
	n.wantTakes("one more", "k1000", true)
	o := block("more", "more")
	o.Reason, o.Author, o.ExpiresAt = "r", "a", c.now().Add(time.Hour)
	if _, err := n.Put(t.Context(), o); !isMistakes(err) {
		t.Errorf("Put of one more: %v, want a mistake", err)
	}
}
