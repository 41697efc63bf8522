// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// Formats tests that a store reads the data of its earlier versions. Dir has a directory for each version, with
// the stored state and the expected answers in answers.jsonl. The directory dev belongs to the next version and
// may be rewritten. The others never change.
type Formats struct {
	Dir string // such as testdata/formats

	// Write, if not empty, is the version that [Formats.Run] writes first: dev, or a version without a directory.
	Write string

	// Open returns a new, empty store.
	Open Open

	// Save writes the stored state to files in dir. A store with leases may first lease tokens of the bucket
	// "leased", under the limit "token bucket".
	Save func(t *testing.T, s mete.Store, dir string)

	// Load returns a store with the state in dir.
	Load func(t *testing.T, dir string, now func() bucket.Instant) mete.Store
}

const (
	nextVersion = "dev"
	answersFile = "answers.jsonl"
)

// Run tests each version in Dir in a subtest.
func (f Formats) Run(t *testing.T) {
	t.Helper()
	if f.Write != "" {
		f.write(t)
	}
	entries, err := os.ReadDir(f.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) == 0 {
		t.Fatalf("%s has no version", f.Dir)
	}
	for _, e := range entries {
		t.Run(e.Name(), func(t *testing.T) {
			dir := filepath.Join(f.Dir, e.Name())
			questions := readAnswers(t, filepath.Join(dir, answersFile))
			got := f.ask(t, dir, questions)
			for i, want := range questions {
				if got[i] != want {
					t.Errorf("state of %s, line %d:\n got %s\nwant %s", e.Name(), i+1, line(t, got[i]), line(t, want))
				}
			}
		})
	}
}

func (f Formats) write(t *testing.T) {
	t.Helper()
	dir := filepath.Join(f.Dir, f.Write)
	if _, err := os.Stat(dir); err == nil && f.Write != nextVersion {
		t.Fatalf("%s exists: the formats of a released version never change", dir)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	clock := NewClock()
	s := f.Open(t, clock.Now)
	spend(t, s, clock)
	f.Save(t, s, dir)

	var text bytes.Buffer
	naive, modelClock := NewModel(nil), NewClock()
	naive.now = modelClock.Now
	spend(t, naive, modelClock)
	asked := questions(t)
	model := answers(t, naive, modelClock, asked)
	for i, a := range f.ask(t, dir, asked) {
		if a.Document != "" && a.Data == "" {
			continue // the store has no documents, or does not save them
		}
		if a.Key != "" && a.ID == "" && !a.Leased && a != model[i] {
			t.Errorf("the model answers otherwise:\n got %s\nwant %s", line(t, a), line(t, model[i]))
		}
		text.Write(append(line(t, a), '\n'))
	}
	if err := os.WriteFile(filepath.Join(dir, answersFile), text.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// An answer is a question and its result: a take of one bucket, a document, or a derived key.
type answer struct {
	After  int64         `json:"after,omitempty"` // microseconds since the state was saved
	Key    string        `json:"key,omitempty"`
	Limit  string        `json:"limit,omitempty"` // as [bucket.Limit.Encode] writes it
	Cost   bucket.Tokens `json:"cost,omitempty"`  // in thousandths
	ID     string        `json:"id,omitempty"`
	Leased bool          `json:"leased,omitempty"`
	DryRun bool          `json:"dry_run,omitempty"`

	Allowed    bool          `json:"allowed,omitempty"`
	Missing    bucket.Tokens `json:"missing,omitempty"`     // in thousandths
	RetryAfter int64         `json:"retry_after,omitempty"` // microseconds
	FullAfter  int64         `json:"full_after,omitempty"`  // microseconds

	Document string `json:"document,omitempty"` // a name
	Data     string `json:"data,omitempty"`
	Purpose  string `json:"purpose,omitempty"` // of a derived key
	Derived  string `json:"derived,omitempty"` // in hexadecimal
}

func line(t *testing.T, a answer) []byte {
	t.Helper()
	text, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// readAnswers reads a file of answers. Unknown fields are errors.
func readAnswers(t *testing.T, path string) (all []answer) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		dec := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		dec.DisallowUnknownFields()
		var a answer
		if err := dec.Decode(&a); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all = append(all, a)
	}
	if err := lines.Err(); err != nil || len(all) == 0 {
		t.Fatalf("%s: %d answers, %v", path, len(all), err)
	}
	return all
}

func (f Formats) ask(t *testing.T, dir string, questions []answer) []answer {
	t.Helper()
	clock := NewClock()
	clock.Advance(saved)
	return answers(t, f.Load(t, dir, clock.Now), clock, questions)
}

func answers(t *testing.T, s mete.Store, clock *Clock, questions []answer) []answer {
	t.Helper()
	all := slices.Clone(questions)
	for i := range all {
		a := &all[i]
		switch {
		case a.Document != "":
			a.Data = ""
			if d, ok := s.(store.Documents); ok {
				data, _, err := d.Document(t.Context(), a.Document, 0)
				if err != nil {
					t.Fatal(err)
				}
				a.Data = string(data)
			}
		case a.Purpose != "":
			key, err := s.(store.KeyDeriver).DeriveKey(t.Context(), a.Purpose)
			if err != nil {
				t.Fatal(err)
			}
			a.Derived = hex.EncodeToString(key[:])
		default:
			limit, err := bucket.DecodeLimit(a.Limit)
			if err != nil {
				t.Fatal(err)
			}
			clock.Set(start + saved + bucket.Instant(a.After))
			charges := []store.Charge{{Key: a.Key, Limit: limit, Cost: a.Cost, Leased: a.Leased}}
			snaps, allowed, err := s.Take(t.Context(), nil, charges, mete.Mode{ID: a.ID, DryRun: a.DryRun})
			if err != nil {
				t.Fatalf("%s: %v", line(t, *a), err)
			}
			a.Allowed, a.Missing, a.FullAfter = allowed, snaps[0].Missing(), snaps[0].FullAfter().Microseconds()
			if a.RetryAfter = -1; snaps[0].RetryAfter != bucket.Never {
				a.RetryAfter = snaps[0].RetryAfter.Microseconds()
			}
		}
	}
	return all
}

// Keys of buckets, IDs and a document in the stored state.
const (
	twoAccounts  = "two accounts"
	inDebt       = "in debt"
	leased       = "leased"
	takeID       = "take 1"
	refundID     = "refund 1"
	documentName = "overrides"
	documentText = "{\"version\":1,\n \"text\":\"ü\"}"
	purpose      = "bucket keys"

	saved = 3_000_000 // microseconds after the clock's start
)

// spend creates the stored state in an empty store. Buckets of each kind have two takes. One bucket has the accounts
// of two limits, one is in debt, and one has a take and a refund by ID. There are also a document and a secret.
func spend(t *testing.T, s mete.Store, clock *Clock) {
	t.Helper()
	take := func(key string, l bucket.Limit, cost bucket.Tokens, mode mete.Mode) bucket.Snapshot {
		t.Helper()
		snaps, allowed, err := s.Take(t.Context(), nil, []store.Charge{charge(key, l, cost*bucket.Token)}, mode)
		if err != nil || !allowed {
			t.Fatalf("take %v of %q: allowed %v, %v", cost, key, allowed, err)
		}
		return snaps[0]
	}
	limits := limitKinds(t)
	token := limits["token bucket"]
	for _, name := range namesOf(limits) {
		take(name, limits[name], 4, mete.Mode{})
	}
	take(inDebt, token, 9, mete.Mode{})
	clock.Advance(1_234_567)
	for _, name := range namesOf(limits) {
		take(name, limits[name], 3, mete.Mode{})
	}
	take(inDebt, token, 8, mete.Mode{MaxWait: bucket.Forced})
	take(twoAccounts, token, 5, mete.Mode{})
	take(twoAccounts, limits["sliding log"], 2, mete.Mode{})
	take(leased, token, 2, mete.Mode{})
	clock.Set(start + saved)
	taken := take(takeID, token, 6, mete.Mode{ID: takeID})
	refund := mete.Refund{Charge: charge(takeID, token, bucket.Token), Taken: taken.Taken()}
	if err := s.Refund(t.Context(), []mete.Refund{refund}, refundID); err != nil {
		t.Fatal(err)
	}
	if d, ok := s.(store.Documents); ok {
		if _, err := d.SetDocument(t.Context(), documentName, []byte(documentText), 0); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.(store.KeyDeriver).DeriveKey(t.Context(), purpose); err != nil {
		t.Fatal(err)
	}
}

// questions returns the questions about the state. Each bucket is peeked at, charged, and asked for more than
// it holds until it is full.
func questions(t *testing.T) []answer {
	t.Helper()
	limits := limitKinds(t)
	type place struct{ key, limit string }
	places := []place{{"never taken", "token bucket"}, {inDebt, "token bucket"}, {takeID, "token bucket"},
		{twoAccounts, "token bucket"}, {twoAccounts, "sliding log"}, {twoAccounts, "fixed window"}}
	for _, name := range namesOf(limits) {
		places = append(places, place{name, name})
	}
	all := []answer{
		{Key: takeID, Limit: limits["token bucket"].Encode(), Cost: 6 * bucket.Token, ID: takeID},
		{Key: leased, Limit: limits["token bucket"].Encode(), Cost: bucket.Token, Leased: true, DryRun: true},
		{After: 5_000_000, Key: leased, Limit: limits["token bucket"].Encode(), Cost: 10 * bucket.Token, Leased: true},
	}
	for _, step := range []answer{
		{DryRun: true}, {Cost: bucket.Token}, {After: 500_000, Cost: 8 * bucket.Token}, {After: 4_000_000, Cost: 5 * bucket.Token},
		{After: 9_500_000, Cost: 8 * bucket.Token}, {After: 60_000_000, Cost: 10 * bucket.Token},
	} {
		for _, p := range places {
			step.Key, step.Limit = p.key, limits[p.limit].ForKey(p.key).Encode()
			all = append(all, step)
		}
	}
	return append(all, answer{Document: documentName}, answer{Purpose: purpose})
}

func namesOf(limits map[string]bucket.Limit) []string {
	var names []string
	for name := range limits {
		names = append(names, name)
	}
	slices.SortFunc(names, strings.Compare)
	return names
}
