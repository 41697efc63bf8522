// SPDX-License-Identifier: Apache-2.0

package trace_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/metehq/mete/cmd/internal/trace"
	"github.com/metehq/mete/internal/testseed"
)

// read returns the path of each request, or which line cannot be read and why.
func read(r *trace.Reader) (got []string) {
	for {
		req, err := r.Next()
		var bad *trace.LineError
		switch {
		case errors.Is(err, io.EOF):
			return got
		case errors.As(err, &bad):
			got = append(got, fmt.Sprintf("line %d: too long: %t", bad.Line, strings.Contains(bad.Error(), "longer than")))
		case err != nil:
			return append(got, err.Error())
		default:
			got = append(got, fmt.Sprint(req.At))
		}
	}
}

// The result does not depend on the size of the reads: all at once, byte by byte or random. io.EOF may
// come with the last bytes or after them.
func TestReader_Pieces(t *testing.T) {
	random := rand.New(testseed.PCG(1, 2))
	var text strings.Builder
	var want []string
	line := 0
	add := func(s, outcome string) {
		line++
		text.WriteString(s + "\n")
		if outcome != "" {
			want = append(want, outcome)
		}
	}
	for i := range 300 {
		add(fmt.Sprintf(`{"at":%d,"path":"/%s"}`, i, strings.Repeat("x", random.IntN(3000))), fmt.Sprint(i*1_000_000))
		switch random.IntN(10) {
		case 0:
			add("", "")
		case 1:
			add("nonsense", fmt.Sprintf("line %d: too long: false", line+1))
		}
		if i%100 == 50 {
			add(`{"at":1,"path":"`+strings.Repeat("y", trace.MaxLineBytes+random.IntN(trace.MaxLineBytes))+`"}`, fmt.Sprintf("line %d: too long: true", line+1))
		}
	}
	whole := strings.TrimSuffix(text.String(), "\n")
	for name, in := range map[string]io.Reader{
		"whole":           strings.NewReader(whole),
		"with an end":     strings.NewReader(whole + "\n"),
		"byte by byte":    iotest.OneByteReader(strings.NewReader(whole)),
		"halves":          iotest.HalfReader(strings.NewReader(whole)),
		"end with data":   iotest.DataErrReader(strings.NewReader(whole)),
		"any length":      pieces{strings.NewReader(whole), random},
		"any, end inside": iotest.DataErrReader(pieces{strings.NewReader(whole), random}),
	} {
		r := trace.NewReader(in, trace.FormatJSONL)
		if got := read(r); !slices.Equal(got, want) {
			t.Errorf("%s: got %d outcomes, want %d: they differ", name, len(got), len(want))
		}
		if got := r.Bytes(); got != int64(len(whole)) && name != "with an end" {
			t.Errorf("%s: read %d bytes, want %d", name, got, len(whole))
		}
	}
}

// pieces reads pieces of any length, none too.
type pieces struct {
	io.Reader
	random *rand.Rand
}

func (p pieces) Read(b []byte) (int, error) {
	return p.Reader.Read(b[:p.random.IntN(min(len(b), 5000)+1)])
}

// An error of the input comes behind the lines that came before it.
func TestReader_InputFails(t *testing.T) {
	boom := errors.New("boom")
	in := io.MultiReader(strings.NewReader("{\"at\":1}\n{\"at\":2}\n{\"at\":"), iotest.ErrReader(boom))
	got := read(trace.NewReader(in, trace.FormatAuto))
	if want := []string{"1000000", "2000000", "after line 2: boom"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
