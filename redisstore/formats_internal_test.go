// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/lease"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/storetest"
	"github.com/redis/rueidis"
)

var formats = flag.String("formats", "", "write the stored formats of this `version`, such as dev or v0.1.0, to testdata/formats")

// TestFormats reads the keys of earlier versions, and compares the decisions with those versions. The file "keys"
// has keys and values without the prefix, one pair of quoted strings per line. An expired bucket equals a full
// one, so the file has no expiry.
func TestFormats(t *testing.T) {
	const name = "keys"
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{proctest.StartRedis(t).Addr}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	stores := 0
	open := func(t *testing.T, now func() bucket.Instant) mete.Store {
		stores++
		s, err := New(client, Config{Prefix: fmt.Sprintf("formats%d:", stores), Now: now, Timeout: 30 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	storetest.Formats{
		Dir: "testdata/formats", Write: *formats, Open: open,
		Save: func(t *testing.T, store mete.Store, dir string) {
			s := store.(*Store)
			l, _, err := bucket.Spec{Capacity: 10 * bucket.Token, Rate: bucket.Rate{Tokens: 10 * bucket.Token, Per: 10 * time.Second}}.Compile()
			if err != nil {
				t.Fatal(err)
			}
			loan := lease.Loan{Key: "leased", Limit: l, Holder: "node", Seq: 1, Want: 3 * bucket.Token, TTL: 4 * time.Second}
			if grant, err := (lender{s}).Borrow(t.Context(), loan); err != nil || grant.Tokens != loan.Want {
				t.Fatalf("borrow: %+v, %v", grant, err)
			}
			keys, err := client.Do(t.Context(), client.B().Keys().Pattern(s.config.Prefix+"*").Build()).AsStrSlice()
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(keys)
			var text bytes.Buffer
			for _, key := range keys {
				value, err := client.Do(t.Context(), client.B().Get().Key(key).Build()).ToString()
				if err != nil {
					t.Fatalf("%s: %v", key, err)
				}
				fmt.Fprintf(&text, "%q %q\n", strings.TrimPrefix(key, s.config.Prefix), value)
			}
			if err := os.WriteFile(filepath.Join(dir, name), text.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		},
		Load: func(t *testing.T, dir string, now func() bucket.Instant) mete.Store {
			s := open(t, now)
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			for pair := range strings.Lines(string(text)) {
				key, value := unquoted(t, &pair), unquoted(t, &pair)
				set := client.B().Set().Key(s.(*Store).config.Prefix + key).Value(value).Build()
				if err := client.Do(t.Context(), set).Error(); err != nil {
					t.Fatal(err)
				}
			}
			return s
		},
	}.Run(t)
}

// unquoted cuts a quoted string from the start of a line.
func unquoted(t *testing.T, line *string) string {
	t.Helper()
	quoted, err := strconv.QuotedPrefix(strings.TrimSpace(*line))
	if err != nil {
		t.Fatalf("%q: %v", *line, err)
	}
	*line = strings.TrimSpace(*line)[len(quoted):]
	text, err := strconv.Unquote(quoted)
	if err != nil {
		t.Fatalf("%q: %v", quoted, err)
	}
	return text
}
