// SPDX-License-Identifier: Apache-2.0

package trace_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/metehq/mete/cmd/internal/trace"
)

// pack compresses text.
func pack(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// requests returns n JSON lines, one per second from the given second on.
func requests(from, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"at":%d,"path":"/%d"}`+"\n", from+i, from+i)
	}
	return b.String()
}

// sequence returns a sequence of files, in the order of their names.
func sequence(t testing.TB, files map[string]string, names ...string) *trace.Sequence {
	t.Helper()
	s := trace.NewSequence(t.Context(), names, trace.FormatAuto, func(name string) (io.ReadCloser, error) {
		text, ok := files[name]
		if !ok {
			return nil, fs.ErrNotExist
		}
		return io.NopCloser(strings.NewReader(text)), nil
	})
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// count reads to the end, or to an error, and returns how many requests there were.
func count(s *trace.Sequence) (n int, err error) {
	for {
		if _, err := s.Next(); errors.Is(err, io.EOF) {
			return n, nil
		} else if err != nil {
			return n, err
		}
		n++
	}
}

func TestSequence(t *testing.T) {
	plain, packed := requests(0, 10), pack(t, requests(10, 10))
	combined := `192.0.2.1 - - [21/Nov/2026:12:00:00 +0000] "GET / HTTP/1.1" 200 1`
	for name, tt := range map[string]struct {
		files  []string
		want   int
		format trace.Format
	}{
		"one":                      {[]string{plain}, 10, trace.FormatJSONL},
		"gzip by its first bytes":  {[]string{packed}, 10, trace.FormatJSONL},
		"the older one compressed": {[]string{pack(t, plain), requests(10, 5)}, 15, trace.FormatJSONL},
		"gzip of several parts":    {[]string{pack(t, plain) + packed + pack(t, requests(20, 3))}, 23, trace.FormatJSONL},
		"parts that cut a line":    {[]string{pack(t, plain[:30]) + pack(t, plain[30:])}, 10, trace.FormatJSONL},
		"no end of the last line":  {[]string{strings.TrimSpace(plain), requests(10, 1)}, 11, trace.FormatJSONL},
		"empty ones":               {[]string{"", plain, "", pack(t, ""), ""}, 10, trace.FormatJSONL},
		"two formats":              {[]string{plain, combined}, 11, trace.FormatCombined},
		"overlapping":              {[]string{plain, requests(5, 10)}, 20, trace.FormatJSONL},
		"nothing":                  {[]string{""}, 0, trace.FormatAuto},
		"one byte":                 {[]string{"\n"}, 0, trace.FormatAuto},
	} {
		files, names, size := map[string]string{}, []string{}, 0
		for i, text := range tt.files {
			names = append(names, fmt.Sprintf("%d.log", i))
			files[names[i]] = text
			size += len(text)
		}
		s := sequence(t, files, names...)
		n, err := count(s)
		if err != nil || n != tt.want || s.Format() != tt.format {
			t.Errorf("%s: got %d requests of format %v, error %v; want %d of %v", name, n, s.Format(), err, tt.want, tt.format)
		}
		if got := s.Consumed(); got != int64(size) || s.Name() != names[len(names)-1] {
			t.Errorf("%s: consumed %d bytes, at last of %s; want %d, %s", name, got, s.Name(), size, names[len(names)-1])
		}
	}
}

func TestSequence_Mistakes(t *testing.T) {
	long := pack(t, requests(0, 20_000))
	for name, tt := range map[string]struct {
		files map[string]string
		want  string // of the error, behind the name of the trace
	}{
		"cut off":            {map[string]string{"a": long[:len(long)/2]}, "a: after line "},
		"cut off and said":   {map[string]string{"a": long[:len(long)/2]}, ": the gzip file is truncated"},
		"cut off at once":    {map[string]string{"a": long[:4]}, "a: the gzip file is truncated"},
		"no gzip behind":     {map[string]string{"a": "\x1f\x8bxxxxxxxxxxxxxxxx"}, "a: detected as gzip by its first bytes: "},
		"damaged":            {map[string]string{"a": long[:len(long)-8] + "12345678"}, "a: after line 20000: gzip: invalid checksum"},
		"the newest first":   {map[string]string{"a": requests(100, 5), "b": requests(0, 5)}, "b: begins before the previous trace"},
		"not there":          {map[string]string{"a": requests(0, 5), "c": ""}, "b: file does not exist"},
		"a line that is not": {map[string]string{"a": requests(0, 5), "b": requests(5, 2) + "{\n"}, "b: line 3: "},
	} {
		s := sequence(t, tt.files, "a", "b")
		_, err := count(s)
		if got := fmt.Sprintf("%s: %v", s.Name(), err); err == nil || !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %q, want an error with %q", name, got, tt.want)
		}
	}
}

// How many lines could be read of a file that is cut off is true.
func TestSequence_CutOff(t *testing.T) {
	whole := pack(t, requests(0, 50_000))
	s := sequence(t, map[string]string{"a": whole[:len(whole)-100]}, "a")
	n, err := count(s)
	if want := fmt.Sprintf("after line %d: ", n); n < 25_000 || err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %d requests and error %v, want one that begins with %q", n, err, want)
	}
}

// A reading that waits for input ends with its context, and a line that is there is
// not kept back for the next.
func TestSequence_Waits(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	in, out := io.Pipe()
	s := trace.NewSequence(ctx, []string{"-"}, trace.FormatAuto, func(string) (io.ReadCloser, error) { return in, nil })
	defer s.Close()
	go io.WriteString(out, requests(7, 1)+`{"at":8`)
	if req, err := s.Next(); err != nil || req.At != 7_000_000 {
		t.Fatalf("got %v, %v; want the request at 7 s", req, err)
	}
	cancel()
	if _, err := s.Next(); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want that of the context", err)
	}
}
