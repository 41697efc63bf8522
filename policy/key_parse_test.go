// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestKey_Parts(t *testing.T) {
	const hash = "~AAAAAAAAAAAAAAAAAAAAAA"
	for _, tt := range []struct {
		key        Key
		tag, limit string
		components string
		parts      []KeyPart
	}{
		{"all:", "", "all", "", nil},
		{"all", "", "all", "", nil},
		{"free:ip=2001:db8::/64|path=/a%7Cb", "", "free", "ip=2001:db8::/64|path=/a%7Cb", []KeyPart{{"ip", "2001:db8::/64", false}, {"path", "/a|b", false}}},
		{"{acme}a%3Ab/c:tenant=acme", "acme", "a:b/c", "tenant=acme", []KeyPart{{"tenant", "acme", false}}},
		{"r:a%3Db=c=d|k=" + hash, "", "r", "a%3Db=c=d|k=" + hash, []KeyPart{{"a=b", "c=d", false}, {"k", hash, true}}},
		{"|login:address=192.0.2.1", "", "|login", "address=192.0.2.1", []KeyPart{{"address", "192.0.2.1", false}}},
		{"r:x=ab%2", "", "r", "x=ab%2", []KeyPart{{"x", "ab%2", false}}}, // cut
		{"{x", "", "{x", "", nil},
		{"", "", "", "", nil},
	} {
		k := tt.key
		if k.Tag() != tt.tag || k.Limit() != tt.limit || k.Components() != tt.components || !slices.Equal(k.Parts(), tt.parts) {
			t.Errorf("%q: got %q, %q, %q, %+v, want %q, %q, %q, %+v", k, k.Tag(), k.Limit(), k.Components(), k.Parts(), tt.tag, tt.limit, tt.components, tt.parts)
		}
	}
}

func TestKey_Masks(t *testing.T) {
	const hash = "~AAAAAAAAAAAAAAAAAAAA-_"
	k := Key("{" + hash + "}a%3Ab:x=" + hash + "|y=alice")
	masked := k.Mask([]byte("s"))
	if limit, hash, ok := masked.CutMask(); !ok || limit != "a:b" || len(hash) != 12 || masked != Key("a:b:~"+hash) {
		t.Errorf("mask %q: got %q, %q, %t", masked, limit, hash, ok)
	}
	if k.Mask([]byte("s")) != masked || k.Mask([]byte("t")) == masked || (k+"x").Mask([]byte("s")) == masked {
		t.Errorf("mask %q: want it to depend on key and secret alone", masked)
	}
	for _, other := range []Key{k, "", "a:~", "a:~0123456789a", "a:~0123456789ag", "a=~0123456789ab"} {
		if limit, hash, ok := other.CutMask(); ok {
			t.Errorf("%q: taken for a mask: %q, %q", other, limit, hash)
		}
	}
	if got := k.MaskParts(); got != "a:b:…" || Key("").MaskParts() != "" {
		t.Errorf("got %q without parts", got)
	}
	if got, any := k.MaskHashes(); got != "{~…}a%3Ab:x=~…|y=alice" || !any {
		t.Errorf("got %q, %t without hashes", got, any)
	}
	if got, any := Key("r:y=alice").MaskHashes(); got != "r:y=alice" || any {
		t.Errorf("got %q, %t without hashes", got, any)
	}
	for part, want := range map[KeyPart]string{
		{"x", "", false}: "", {"x", hash, true}: "~…", {"x", "short", false}: "…", {"x", "alice@", false}: "al…", {"x", "éèêëēė", false}: "éè…",
		{"ip", "192.0.2.77", false}: "192.0.2.0/24", {"ip", "2001:db8:1:2::/64", false}: "2001:db8:1::/48",
	} {
		if got := part.Mask(); got != want {
			t.Errorf("%+v: got %q, want %q", part, got, want)
		}
	}
}

func TestOwnKeyPrefix(t *testing.T) {
	if own, of := OwnKeyPrefix("probe"), limitPrefix("|probe"); own != "|probe:" || strings.HasPrefix(of, "|") {
		t.Errorf("got %q, and %q for a limit of a policy: want that no limit begins with a bar", own, of)
	}
}

// FuzzParseKey: a key of hostile values parses to the same values. Parsing any text neither panics nor returns
// an invalid value.
func FuzzParseKey(f *testing.F) {
	f.Add("", "r", "tenant", "acme", "path", "/v1")
	f.Add("acme", "a:b/c", "a=b", "c=d|e", "", "")
	f.Add("{}", "|#{~", "~%", "~AAAAAAAAAAAAAAAAAAAAAA", "%41", "\x00\xff")
	f.Add("192.0.2.1", strings.Repeat("é", 64), "ip", "2001:db8::/64", "x|y", ":")
	f.Fuzz(func(t *testing.T, tag, limit, label1, value1, label2, value2 string) {
		parts := []KeyPart{{Label: label1, Value: value1}, {Label: label2, Value: value2}}
		var components []byte
		for i, p := range parts {
			components = appendEscaped(appendLabel(components, escapeLabel(p.Label), i), p.Value)
		}
		text := joinKey(string(appendEscaped(nil, tag)), limitPrefix(limit), string(components))
		k, err := ParseKey(string(text))
		if len(text) > MaxKeyBytes {
			if _, ok := errors.AsType[*KeyError](err); !ok {
				t.Fatalf("%d bytes: got %v, want a KeyError", len(text), err)
			}
			return
		}
		if err != nil || k.Tag() != tag || k.Limit() != limit || k.Components() != string(components) || !slices.Equal(k.Parts(), parts) {
			t.Errorf("%q: got %q, %q, %+v, %v; want %q, %q, %+v", k, k.Tag(), k.Limit(), k.Parts(), err, tag, limit, parts)
		}
		for _, c := range splitComponents(string(components)) {
			if _, value := splitComponent(c); !isValue(value) {
				t.Errorf("%q: the value %q is not one", k, value)
			}
		}
		if limit, _, ok := k.CutMask(); ok {
			t.Errorf("%q: taken for the mask of limit %q", k, limit)
		}
		if masked := k.Mask(nil); len(masked) == 0 {
			t.Errorf("%q: no mask", k)
		} else if got, _, ok := masked.CutMask(); !ok || got != limit {
			t.Errorf("%q: mask %q is of limit %q, want %q", k, masked, got, limit)
		}
		for _, hostile := range []string{tag, limit, value1, value2} {
			k := Key(hostile)
			k.Parts()
			k.MaskHashes()
			if isValue(hostile) && !isHashed(hostile) && string(appendEscaped(nil, unescape(hostile))) != hostile {
				t.Errorf("%q: taken for a value", hostile)
			}
		}
	})
}
