// SPDX-License-Identifier: Apache-2.0

package overrides_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete/overrides"
	"github.com/metehq/mete/policy"
)

func always(policy.Override) error { return nil }

func (n *node) putLocal(o policy.Override) overrides.Status {
	n.t.Helper()
	s, err := n.PutLocal(o, always)
	if err != nil {
		n.t.Fatalf("PutLocal(%s): %v", o.ID, err)
	}
	return s
}

// local is a block that lasts that long.
func local(c *clock, id, key string, lasts time.Duration) policy.Override {
	o := block(id, key)
	o.ExpiresAt, o.Reason, o.Author = c.now().Add(lasts), "the store is down", "kim"
	return o
}

// A local override is active in one process, and needs no store.
func TestPutLocal(t *testing.T) {
	c := newClock()
	kept := newStore(t, c)
	a, b := newNode(t, c, kept, rules), newNode(t, c, kept, rules)
	a.put(block("shared", "bad"))
	s := a.putLocal(local(c, "here", "worse", 10*time.Minute))
	if s.Source != overrides.SourceLocal || s.State != overrides.StateActive || a.CountLocal() != 1 {
		t.Errorf("made %+v, %d are local", s, a.CountLocal())
	}
	b.refresh()
	a.wantTakes("with a local block", "worse", false)
	a.wantTakes("with a shared block", "bad", false)
	b.wantTakes("the other process", "worse", true)
	if list := b.List(); len(list) != 1 {
		t.Errorf("the other process lists %+v", list)
	}
	if list := a.List(); len(list) != 2 || list[1].ID != "here" || list[1].Source != overrides.SourceLocal || a.CountActive()[policy.ActionBlock] != 2 {
		t.Errorf("it lists %+v and counts %v", list, a.CountActive())
	}
	if len(a.Audit()) != 1 || !strings.Contains(a.log.String(), `msg="local override made" id=here action=block`) || strings.Contains(a.log.String(), "worse") {
		t.Errorf("audit %+v, log:\n%s", a.Audit(), a.log)
	}
	if err := a.SetBase(load(t, rules)); err != nil { // a new policy keeps it
		t.Fatal(err)
	}
	a.wantTakes("with a new policy", "worse", false)
	b.put(block("shared2", "x")) // a change of the document, too
	a.refresh()
	a.wantTakes("after a change by another process", "worse", false)
	if err := a.Remove(t.Context(), "here", "kim", "it is over"); err != nil {
		t.Fatal(err)
	}
	a.wantTakes("after its removal", "worse", true)
	if a.CountLocal() != 0 || a.log.Count("local override removed") != 1 {
		t.Errorf("%d are local, log:\n%s", a.CountLocal(), a.log)
	}
}

// The end is required, near, and kept without the store.
func TestPutLocal_Bounds(t *testing.T) {
	c := newClock()
	n := newNode(t, c, newStore(t, c), rules)
	n.put(block("shared", "bad"))
	for name, test := range map[string]struct {
		o    policy.Override
		want string
	}{
		"too long":    {local(c, "a", "k", overrides.MaxLocalTime+time.Second), "at most one hour"},
		"over":        {local(c, "a", "k", -time.Second), "must be in the future"},
		"a shared ID": {local(c, "shared", "k", time.Minute), "a shared override has this ID"},
		"no reason":   {func() policy.Override { o := local(c, "a", "k", 2*time.Hour); o.Reason = ""; return o }(), "reason must not be empty"},
	} {
		var wrong policy.Errors
		if _, err := n.PutLocal(test.o, always); !errors.As(err, &wrong) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
	for i := range overrides.MaxLocal {
		n.putLocal(local(c, fmt.Sprint("l", i), "k", time.Hour))
	}
	if _, err := n.PutLocal(local(c, "more", "k", time.Hour), always); !errors.Is(err, overrides.ErrFull) {
		t.Errorf("one too many: %v", err)
	}
	n.putLocal(local(c, "l7", "other", time.Minute)) // in the place of one
	denied := errors.New("no")
	if _, err := n.PutLocal(local(c, "l7", "k", time.Minute), func(policy.Override) error { return denied }); !errors.Is(err, denied) {
		t.Errorf("may was not asked: %v", err)
	}
	n.wantTakes("a replaced one", "other", false)
	c.advance(time.Minute)
	n.wantTakes("after its end", "other", true)
}

// A clock that is set back lets no local override last longer.
func TestPutLocal_ClockStepsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClock()
		n := newNode(t, c, newStore(t, c), rules)
		n.follow()
		n.putLocal(local(c, "here", "bad", overrides.MaxLocalTime))
		n.pass(overrides.MaxLocalTime / 2)
		c.advance(-24 * time.Hour)
		n.pass(overrides.DefaultPoll)
		n.wantTakes("after the step", "bad", false)
		later := n.putLocal(local(c, "later", "worse", overrides.MaxLocalTime))
		n.pass(overrides.MaxLocalTime/2 + overrides.DefaultPoll)
		n.wantTakes("an hour after it was made", "bad", true)
		n.wantTakes("one that was made after the step", "worse", false)
		if list := n.List(); len(list) != 1 || list[0].ID != later.ID || n.log.Count("clock stepped back") != 1 {
			t.Errorf("it lists %+v, log:\n%s", list, n.log)
		}
	})
}

// A shared override replaces a local one with its ID, and is the one that is removed.
func TestPutLocal_Replaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClock()
		kept := newStore(t, c)
		a, b := newNode(t, c, kept, rules), newNode(t, c, kept, rules)
		a.putLocal(local(c, "one", "worse", time.Hour))
		b.put(block("one", "bad"))
		a.refresh()
		if err := a.Remove(t.Context(), "one", "kim", "it is over"); err != nil {
			t.Fatal(err)
		}
		if list := b.Audit(); len(list) != 1 {
			t.Errorf("the other process has the audit %+v before it looks", list)
		}
		b.refresh()
		b.wantTakes("after the removal of the shared one", "bad", true)

		b.put(block("one", "bad"))
		a.follow()
		a.pass(overrides.DefaultPoll)
		a.pass(overrides.DefaultPoll)
		if a.log.Count("local override replaced") != 1 {
			t.Errorf("log:\n%s", a.log)
		}
		if err := b.Remove(t.Context(), "one", "kim", "it is over"); err != nil {
			t.Fatal(err)
		}
		a.pass(overrides.DefaultPoll)
		a.wantTakes("the replaced one does not return", "worse", true)
	})
}
