// SPDX-License-Identifier: Apache-2.0

package overrides_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/metehq/mete/overrides"
	"github.com/metehq/mete/policy"
)

var formats = flag.String("formats", "", "write the stored formats of this `version`, such as dev or v0.1.0, to testdata/formats")

// The documents of earlier versions are read: their overrides and their audit are the same
// as then, and the next change keeps them.
func TestFormats(t *testing.T) {
	const dir = "testdata/formats"
	if *formats != "" {
		writeFormat(t, filepath.Join(dir, *formats))
	}
	versions, err := os.ReadDir(dir)
	if err != nil || len(versions) == 0 {
		t.Fatalf("%d versions, %v", len(versions), err)
	}
	for _, v := range versions {
		t.Run(v.Name(), func(t *testing.T) {
			c := newClock()
			c.advance(time.Hour)
			documents := newStore(t, c)
			text := fileText(t, filepath.Join(dir, v.Name(), "overrides.json"))
			if _, err := documents.SetDocument(t.Context(), overrides.DefaultName, text, 0); err != nil {
				t.Fatal(err)
			}
			n := newNode(t, c, documents, rules)
			n.refresh()
			want := string(fileText(t, filepath.Join(dir, v.Name(), "expected.json")))
			if got := shown(t, n); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			n.wantTakes("blocked", "k1", false)
			n.wantTakes("raised", "k2", true, true, true, true, false)
			before := len(n.List())
			n.put(block("later", "k3"))
			if got := len(n.List()); got != before+1 {
				t.Errorf("%d overrides after one more, want %d", got, before+1)
			}
		})
	}
}

// writeFormat writes the document of a version, and what it shows after an hour.
func writeFormat(t *testing.T, dir string) {
	t.Helper()
	if _, err := os.Stat(dir); err == nil && filepath.Base(dir) != "dev" {
		t.Fatalf("%s exists: the formats of a released version never change", dir)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	c := newClock()
	documents := newStore(t, c)
	n := newNode(t, c, documents, rules)
	later := c.now().Add(24 * time.Hour)
	for _, o := range []policy.Override{block("block-k1", "k1"), raise("raise-k2", "k2"), block("removed", "k4")} {
		o.ExpiresAt = later
		n.put(o)
	}
	n.put(policy.Override{ID: "ends", Action: policy.ActionBlock, Match: of("k5"), ExpiresAt: c.now().Add(30 * time.Minute)})
	if err := n.Remove(t.Context(), "removed", "kim", "over"); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Note(t.Context(), overrides.Entry{Kind: overrides.EntryTaken, Key: "free:api=k9", Author: "kim", Role: "operate", From: "192.0.2.1", Reason: "test", Tokens: "2.5"}); err != nil {
		t.Fatal(err)
	}
	text, _, err := documents.Document(t.Context(), overrides.DefaultName, 0)
	if err != nil {
		t.Fatal(err)
	}
	c.advance(time.Hour)
	reader := newNode(t, c, documents, rules)
	reader.refresh()
	for name, data := range map[string][]byte{"overrides.json": text, "expected.json": []byte(shown(t, reader))} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// shown returns all overrides and the audit of a node.
func shown(t *testing.T, n *node) string {
	t.Helper()
	text, err := json.MarshalIndent(struct {
		Overrides []overrides.Status
		Audit     []overrides.Entry
	}{n.List(), n.Audit()}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + "\n"
}

func fileText(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
