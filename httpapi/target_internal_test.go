// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"encoding/json"
	"testing"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/policy"
)

func TestTarget_About(t *testing.T) {
	target := &target{key: "{x}search:x-user=alice|sub=~12", rule: "search", values: map[string]string{"header:x-user": "alice"}}
	match := func(text string) json.RawMessage { return json.RawMessage(text) }
	for _, tt := range []struct {
		o    api.Override
		want string
	}{
		{api.Override{Key: "search:x-user=alice|sub=~12"}, "key"},
		{api.Override{Key: "{y}search:x-user=alice|sub=~12"}, "key"},
		{api.Override{Key: "search/burst:x-user=alice|sub=~12", Rules: []string{"search"}}, "key"},
		{api.Override{Key: "search:x-user=bob|sub=~12"}, ""},
		{api.Override{Key: "searches:x-user=alice|sub=~12"}, ""},
		{api.Override{Rules: []string{"other"}}, ""},
		{api.Override{Rules: []string{"search"}}, "all"},
		{api.Override{}, "all"},
		{api.Override{Match: match(`{}`)}, "all"},
		{api.Override{Match: match(`{"header:x-user": "al*"}`)}, "match"},
		{api.Override{Match: match(`{"header:x-user": ["bob", "alice"]}`)}, "match"},
		{api.Override{Match: match(`{"header:x-user": {"not": "bob"}}`)}, "match"},
		{api.Override{Match: match(`{"header:x-user": {"not": "alice"}}`)}, ""},
		{api.Override{Match: match(`{"header:x-user": "alice", "path": "/"}`)}, ""},
		{api.Override{Match: match(`{"path": "/"}`)}, ""},
		{api.Override{Match: match(`{"jwt:sub": "~12"}`)}, ""},
		{api.Override{Match: match(`no JSON`)}, ""},
	} {
		if got := target.matchKind(&tt.o); got != tt.want {
			t.Errorf("%+v %s: got %q, want %q", tt.o, tt.o.Match, got, tt.want)
		}
	}
	for key, want := range map[string]bool{
		"search:x-user=alice|sub=~12": true, "{z}search:x-user=alice|sub=~12": true, "search/burst:x-user=alice|sub=~12": false, "search:x-user=%61lice|sub=~12": false, "": false,
	} {
		if got := target.hasKey(key); got != want {
			t.Errorf("%q: got %t, want %t", key, got, want)
		}
	}
	escaped := policy.Key("search%2Fall:x=%2F")
	if escaped.Limit() != "search/all" || escaped.Components() != "x=%2F" || policy.Key("%ff:x").Limit() != "%ff" {
		t.Errorf("got %q and %q", escaped.Limit(), escaped.Components())
	}
}
