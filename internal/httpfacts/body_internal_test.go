// SPDX-License-Identifier: Apache-2.0

package httpfacts

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/metehq/mete/policy"
)

func (m *bodyMemory) total() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used
}

func TestHoldBody_CountsItsMemory(t *testing.T) {
	s, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	model, _ := policy.ParseAttribute("ai:model")
	text := `{"model": "m", "messages": [{"content": "` + strings.Repeat("x", 100_000) + `"}]}`
	held := func(free func(*Facts)) {
		t.Helper()
		f := s.Facts(httptest.NewRequest("POST", "/v1/chat/completions", strings.NewReader(text)))
		defer f.Release()
		if got, ok := f.Lookup(model); got != "m" || !ok || f.Ambiguity() != "" {
			t.Fatalf("model %q, %v, %q", got, ok, f.Ambiguity())
		}
		if n := s.bodies.total(); n < int64(len(text)) || n > 2*int64(len(text)) {
			t.Errorf("a body of %d bytes counts %d", len(text), n)
		}
		free(f)
		if n := s.bodies.total(); n != 0 {
			t.Errorf("%d bytes stay", n)
		}
	}
	held(func(f *Facts) {
		if got, err := io.ReadAll(f.Request().Body); string(got) != text || err != nil {
			t.Errorf("the handler reads %d bytes, %v", len(got), err)
		}
	})
	held(func(f *Facts) { f.Request().Body.Close() })
	held(func(f *Facts) { FreeBody(f.Request()) })

	s.bodies.used = MaxBodyBytes
	f := s.Facts(httptest.NewRequest("POST", "/v1/chat/completions", strings.NewReader(text)))
	defer f.Release()
	if f.Lookup(model); !f.Overloaded() || s.bodies.total() != MaxBodyBytes {
		t.Errorf("without memory: overloaded %v, %d bytes", f.Overloaded(), s.bodies.total())
	}
	if got, _ := io.ReadAll(f.Request().Body); string(got) != text {
		t.Errorf("without memory, a handler reads %d bytes", len(got))
	}
}

// A transport may still read the body when the handler returns.
func TestHeldBody_FreedDuringRead(t *testing.T) {
	s, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		f := s.Facts(httptest.NewRequest("POST", "/", nil))
		held, _ := f.holdBody(io.NopCloser(strings.NewReader(strings.Repeat("x", 100_000))), -1)
		done := make(chan error)
		go func() {
			_, err := io.Copy(io.Discard, held)
			done <- err
		}()
		held.free()
		if err := <-done; err != nil && err != http.ErrBodyReadAfterClose {
			t.Fatal(err)
		}
	}
	if n := s.bodies.total(); n != 0 {
		t.Errorf("%d bytes stay", n)
	}
}

// A client holds at most as much as it leaves free, whatever the number of its requests.
func TestBodyMemory_Shares(t *testing.T) {
	const piece = 1 << 20
	m := &bodyMemory{}
	fill := func(address string) (held []*heldBytes, shared bool) {
		for {
			h := &heldBytes{all: m, client: clientOf(address)}
			ok, shared := h.grow(piece)
			if !ok {
				return held, shared
			}
			held = append(held, h)
		}
	}
	first, shared := fill("192.0.2.1")
	if len(first)*piece != MaxBodyBytes/2 || !shared {
		t.Errorf("the first client holds %d of %d MiB, shared %v", len(first), MaxBodyBytes/piece, shared)
	}
	second, _ := fill("2001:db8::1")
	if len(second)*piece != MaxBodyBytes/4 {
		t.Errorf("the second client holds %d MiB", len(second))
	}
	for _, address := range []string{"2001:db8::ffff:1", "192.0.2.1", "::ffff:192.0.2.1"} {
		if more, shared := fill(address); len(more) > 0 || !shared {
			t.Errorf("%s holds %d MiB more", address, len(more))
		}
	}
	third, _ := fill("192.0.2.3")
	if len(third)*piece != MaxBodyBytes/8 {
		t.Errorf("the third client holds %d MiB", len(third))
	}
	unknown, shared := fill("") // a program's own requests
	if len(unknown)*piece != MaxBodyBytes/8 || shared {
		t.Errorf("requests without an address hold %d MiB, shared %v", len(unknown), shared)
	}
	for _, h := range slices.Concat(first, second, third, unknown) {
		h.free()
		h.free()
	}
	if m.total() != 0 || len(m.clients) != 0 {
		t.Errorf("%d bytes stay, of clients %v", m.total(), m.clients)
	}
}
