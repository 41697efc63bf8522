// SPDX-License-Identifier: Apache-2.0

package sharedkey_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"strings"
	"testing"

	"github.com/metehq/mete/internal/sharedkey"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

// A memory keeps one document. If rival is set, another process writes it just before
// this one does.
type memory struct {
	secret, document, rival string
	failure                 error
}

func (m *memory) DeriveKey(context.Context, string) ([sha256.Size]byte, error) {
	return sha256.Sum256([]byte(m.secret)), m.failure
}

func (m *memory) Document(context.Context, string, int64) ([]byte, int64, error) {
	if m.document == "" {
		return nil, 0, m.failure
	}
	return []byte(m.document), 1, m.failure
}

func (m *memory) SetDocument(_ context.Context, _ string, data []byte, revision int64) (int64, error) {
	if m.rival != "" {
		m.document = m.rival
	}
	if m.document != "" && revision == 0 {
		return 0, store.ErrRevision
	}
	m.document = string(data)
	return 1, nil
}

func TestCheck(t *testing.T) {
	id := func(key string) string { return policy.HashKeyID([]byte(key)) }
	own := func(secret string) string { k := sha256.Sum256([]byte(secret)); return policy.HashKeyID(k[:]) }
	for name, tt := range map[string]struct {
		store memory
		ids   []string
		want  error // of the last
	}{
		"no hashes":                       {memory{}, []string{id("a"), ""}, nil},
		"the same":                        {memory{}, []string{id("a"), id("a")}, nil},
		"another":                         {memory{}, []string{id("a"), id("b")}, policy.ErrHashKey},
		"the store's own, and a set one":  {memory{}, []string{own(""), id("b")}, policy.ErrHashKey},
		"a set one, and the store's own":  {memory{}, []string{id("a"), own("")}, policy.ErrHashKey},
		"a rival with the same one":       {memory{rival: id("a")}, []string{id("a")}, nil},
		"a rival with another one":        {memory{rival: id("b")}, []string{id("a")}, policy.ErrHashKey},
		"a store that does not answer":    {memory{failure: store.ErrUnavailable}, []string{id("a")}, store.ErrUnavailable},
		"a store that is not even needed": {memory{failure: store.ErrUnavailable}, []string{""}, nil},
	} {
		var err error
		for _, id := range tt.ids {
			err = sharedkey.Check(t.Context(), &tt.store, id, "do this")
		}
		if !errors.Is(err, tt.want) || tt.want == nil && err != nil {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
		if errors.Is(err, policy.ErrHashKey) && !strings.Contains(err.Error(), "do this") {
			t.Errorf("%s: %v has no remedy", name, err)
		}
	}
}

// TestCheck_WithoutTheSecret proves that a process with a configured key needs no access to the store's secret,
// and is still rejected for a different key.
func TestCheck_WithoutTheSecret(t *testing.T) {
	s := &noSecret{}
	for key, want := range map[string]error{"a": nil, "b": policy.ErrHashKey} {
		s.document = policy.HashKeyID([]byte("a"))
		if err := sharedkey.Check(t.Context(), s, policy.HashKeyID([]byte(key)), "do this"); !errors.Is(err, want) {
			t.Errorf("key %s: %v, want %v", key, err, want)
		}
	}
	s.document = ""
	if err := sharedkey.Check(t.Context(), s, policy.HashKeyID([]byte("a")), "do this"); err != nil || s.document != policy.HashKeyID([]byte("a")) {
		t.Errorf("the first: %v, document %q", err, s.document)
	}
}

// A noSecret store denies access to its secret.
type noSecret struct{ memory }

func (*noSecret) DeriveKey(context.Context, string) ([sha256.Size]byte, error) {
	return [sha256.Size]byte{}, errors.New("no right to the secret")
}

// TestCheck_AfterALostSecret proves that a store replaces a lost secret, so that its processes continue.
func TestCheck_AfterALostSecret(t *testing.T) {
	store := memory{secret: "first"}
	for _, secret := range []string{"first", "second"} {
		store.secret = secret
		key, _ := store.DeriveKey(t.Context(), policy.HashPurpose)
		if err := sharedkey.Check(t.Context(), &store, policy.HashKeyID(key[:]), ""); err != nil {
			t.Errorf("secret %q: %v", secret, err)
		}
	}
}
