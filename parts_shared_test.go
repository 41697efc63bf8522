// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
)

// An override replaces the limit of a whole bucket, so that all parts of the bucket have the same limit.
func TestParts_OverrideLimit(t *testing.T) {
	r := newRig(t, `{"rules": [
		{"name": "user", "limit_keys": ["user"], "algorithm_config": {"rate": "1/1h", "burst": 9}},
		{"name": "model", "group": "model", "limit_keys": ["model"], "algorithm_config": {"rate": "1/1h", "burst": 9}}],
		"overrides": [{"id": "small", "action": "limit", "rules": ["user"], "match": {"user": "alice"}, "algorithm_config": {"rate": "1/2h", "burst": 3},
		"reason": "r", "author": "a", "expires_at": "2999-01-01T00:00:00Z"}]}`)
	alice, bob := partOf("alice"), partOf("bob")
	also := mete.Part{Attributes: mete.Attrs{"user": "alice", "model": "m"}}
	res, err := r.Reserve(t.Context(), mete.Request{ID: "r", Parts: []mete.Part{alice, bob, also, alice}})
	if err != nil {
		t.Fatal(err)
	}
	s := res.Limits()
	if !res.Allowed || len(s) != 3 || s[0].Room() != 0 || s[0].Snapshot.Limit.Capacity() != 3*bucket.Token || s[0].Limit.Override == nil {
		t.Fatalf("%+v: want one empty bucket of the override", res.Decision)
	}
	for i, want := range []bool{true, false, true, true} {
		if s[0].HasPart(i) != want {
			t.Errorf("the override's limit applies to part %d: %v, want %v", i, !want, want)
		}
	}
	if d := r.takeParts(bob, also); d.Allowed || d.RetryAfter != 2*time.Hour || d.Part() != 1 || d.Decider().Limit.Override.ID != "small" {
		t.Errorf("%+v: want a denial with the rate of the override", d)
	}
	if d := r.takeParts(alice, alice, also, alice); d.Allowed || d.RetryAfter != bucket.Never {
		t.Errorf("%+v: want 4 tokens denied forever", d)
	}
	if err := res.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.holds(mete.Attrs{"user": "alice"}, 3)
	r.holds(mete.Attrs{"user": "bob"}, 9)
}

// A retry with parts spends nothing from enforced and shadow buckets, also if the shadow buckets need several takes.
func TestParts_ShadowRetry(t *testing.T) {
	r := newRig(t, `{"rules": [
		{"name": "all", "limit_keys": [], "algorithm_config": {"rate": "1/1h", "burst": 1000}},
		{"name": "a", "limit_keys": ["user"], "mode": "shadow", "group": "a", "algorithm_config": {"rate": "1/1h", "burst": 9, "shards": 3}},
		{"name": "b", "limit_keys": ["user"], "mode": "shadow", "group": "b", "algorithm_config": {"rate": "1/1h", "burst": 9}}]}`)
	parts := make([]mete.Part, mete.MaxParts)
	for i := range parts {
		parts[i] = partOf(fmt.Sprint("u", i%60)) // the last parts share buckets with the first
	}
	req := mete.Request{ID: "once", Parts: parts}
	take := func() mete.Decision {
		return r.do("take", func() (mete.Decision, error) { return r.Take(t.Context(), req) })
	}
	first, again := take(), take()
	if len(first.Shadow) != 120 || len(again.Shadow) != 120 {
		t.Fatalf("%d and %d shadow limits, want 120", len(first.Shadow), len(again.Shadow))
	}
	if n := again.Limits()[0].Room(); n != (1000-mete.MaxParts)*bucket.Token {
		t.Errorf("%v left after a retry: it was charged again", n)
	}
	for i := range first.Shadow {
		a, b := &first.Shadow[i], &again.Shadow[i]
		sharded := a.Limit.Shards > 1 // its room is an estimate
		if a.Key != b.Key || !sharded && a.Room() != b.Room() || b.Room() < a.Room() || !b.Allowed {
			t.Errorf("shadow limit %d of %q: %v left, and %v after a retry", i, a.Key, a.Room(), b.Room())
		}
	}
	req.ID = ""
	if third := take(); third.Shadow[119].Room() >= first.Shadow[119].Room() {
		t.Error("a new request was not charged to the shadow rules")
	}
}

// The costs of all parts, charges and refunds of one bucket are at most bucket.MaxTokens.
func TestParts_Sums(t *testing.T) {
	r := newRig(t, `{"rules": [{"name": "user", "limit_keys": ["user"], "algorithm_config": {"rate": "1/1s", "burst": 5}}]}`)
	half := partOf("alice")
	half.Cost = mete.TokensOf(bucket.MaxTokens/2 - bucket.MaxTokens/2%bucket.Token)
	if d := r.takeParts(half, half); d.Allowed || d.RetryAfter != bucket.Never {
		t.Errorf("%+v: want a denial forever", d)
	}
	if err := r.Refund(t.Context(), mete.Request{Parts: []mete.Part{half, half, half}}); !errors.Is(err, mete.ErrCost) {
		t.Errorf("refund of more than MaxTokens: %v, want ErrCost", err)
	}
	r.takeParts(partOf("alice"), partOf("alice"))
	look := partOf("alice")
	look.Look = true
	if err := r.Refund(t.Context(), mete.Request{Parts: []mete.Part{look}}); err != nil {
		t.Errorf("refund of nothing: %v", err)
	}
	r.holds(mete.Attrs{"user": "alice"}, 3)
	if err := r.Refund(t.Context(), mete.Request{Parts: []mete.Part{half, half}}); err != nil {
		t.Error(err)
	}
	r.holds(mete.Attrs{"user": "alice"}, 5)
}

// TakeUpTo bounds the amount of every part by the emptiest bucket.
func TestParts_UpTo(t *testing.T) {
	r := newRig(t, userRule)
	for range 3 {
		r.take(mete.Attrs{"user": "bob"})
	}
	four, two := partOf("alice"), partOf("bob")
	four.Cost, two.Cost = 4, 2
	d := r.upTo(mete.Request{Parts: []mete.Part{four, two}})
	if s := d.Limits(); !d.Allowed || d.Taken != 2*bucket.Token || s[0].Cost != 2*bucket.Token || s[1].Cost != 2*bucket.Token {
		t.Errorf("%+v: want 2 tokens of each", d)
	}
}
