// SPDX-License-Identifier: Apache-2.0

package trace_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/metehq/mete/cmd/internal/trace"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/policy"
)

// Requests are sorted by time, and for equal times by file, both in memory and in many runs. Each keeps
// its position.
func TestSorted(t *testing.T) {
	type place struct {
		at   int
		name string
		line int
	}
	rnd := rand.New(testseed.PCG(1, 2))
	for _, most := range []int{0, 1, 500, 5000} {
		dir := t.TempDir()
		t.Setenv("TMPDIR", dir)
		files, want := map[string]string{}, []place{}
		for _, name := range []string{"a", "b", "c"} {
			var text strings.Builder
			for line := range 200 {
				at := rnd.IntN(50)
				fmt.Fprintf(&text, `{"at":%d,"path":"/%s/%d"}`+"\n", at, name, line+1)
				want = append(want, place{at, name, line + 1})
			}
			files[name] = text.String()
		}
		files["b"] = pack(t, files["b"])
		slices.SortStableFunc(want, func(a, b place) int { return a.at - b.at })
		s := trace.NewSorted(sequence(t, files, "a", "b", "c"), most)
		for i := 0; ; i++ {
			req, err := s.Next()
			if errors.Is(err, io.EOF) && i == len(want) {
				break
			}
			if err != nil || i == len(want) {
				t.Fatalf("with %d bytes: request %d: %v", most, i, err)
			}
			path, _ := policy.ParseAttribute("path")
			got, _ := req.Lookup(path)
			if w := want[i]; int64(req.At) != int64(w.at)*1_000_000 || s.Name() != w.name || s.Line() != w.line || got != fmt.Sprintf("/%s/%d", w.name, w.line) {
				t.Fatalf("with %d bytes: request %d is at %d, %s:%d, %s; want %+v", most, i, req.At, s.Name(), s.Line(), got, w)
			}
		}
		if s.Lines() != len(want) || s.Format() != trace.FormatJSONL {
			t.Errorf("with %d bytes: %d lines of %v, want %d", most, s.Lines(), s.Format(), len(want))
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("with %d bytes: %d files are left, %v", most, len(left), err)
		}
	}
}

// Lines that cannot be read are told with their places, and the others are sorted.
func TestSorted_InvalidLines(t *testing.T) {
	const log = `192.0.2.1 - - [21/Nov/2026:12:00:0%d +0000] "GET /%d HTTP/1.1" 200 1` + "\n"
	s := trace.NewSorted(sequence(t, map[string]string{"a": fmt.Sprintf(log, 5, 5) + "broken\n" + fmt.Sprintf(log, 3, 3) + "\n" + fmt.Sprintf(log, 4, 4)}, "a"), 0)
	var seen []string
	for {
		req, err := s.Next()
		var bad *trace.LineError
		switch {
		case errors.Is(err, io.EOF):
			if got, want := strings.Join(seen, " "), "bad:2 a:3 a:5 a:1"; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			return
		case errors.As(err, &bad):
			seen = append(seen, fmt.Sprintf("bad:%d", bad.Line))
		case err != nil:
			t.Fatal(err)
		case req != nil:
			seen = append(seen, fmt.Sprintf("%s:%d", s.Name(), s.Line()))
		}
	}
}
