// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/httpapi"
)

// knowing returns the access to a server with one admin token, and the hash of that.
func knowing(t *testing.T) *access {
	t.Helper()
	a := &access{secret: []byte("secret")}
	a.setTokens([]config.AdminToken{{Name: "kim", Role: httpapi.RoleOperate, Token: "admin"}})
	return a
}

func TestSignIns_Expire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := knowing(t)
		late, _ := a.newLink(a.hash("admin"))
		time.Sleep(linkLifetime)
		if _, _, ok := a.redeem(late); ok {
			t.Error("a link works after its end")
		}
		link, ends := a.newLink(a.hash("admin"))
		time.Sleep(time.Until(ends) - 1)
		session, ends, ok := a.redeem(link)
		if !ok {
			t.Fatal("a link does not work before its end")
		}
		time.Sleep(time.Until(ends) - 1)
		if got, ok := a.find(session); !ok || got != (caller{"kim", httpapi.RoleOperate}) {
			t.Errorf("the session is %v, %v before its end; want kim", got, ok)
		}
		time.Sleep(time.Nanosecond)
		if got, ok := a.find(session); ok {
			t.Errorf("the session is %v after its end", got)
		}
	})
}

// A session ends with its admin token.
func TestSignIns_EndWithTheToken(t *testing.T) {
	a := knowing(t)
	link, _ := a.newLink(a.hash("admin"))
	session, _, _ := a.redeem(link)
	if _, ok := a.find(session); !ok {
		t.Fatal("the session does not work")
	}
	a.setTokens([]config.AdminToken{{Name: "kim", Role: httpapi.RoleOperate, Token: "another"}})
	if got, ok := a.find(session); ok {
		t.Errorf("without its admin token, the session is %v", got)
	}
}

// Links and sessions have bounds: the oldest one ends.
func TestSignIns_Bounded(t *testing.T) {
	a := knowing(t)
	first, _ := a.newLink(a.hash("admin"))
	var last string
	for range maxLinks {
		last, _ = a.newLink(a.hash("admin"))
	}
	if _, _, ok := a.redeem(first); ok {
		t.Error("the oldest link still works")
	}
	oldest, _, ok := a.redeem(last)
	if !ok {
		t.Fatal("the newest link does not work")
	}
	for range maxSessions {
		link, _ := a.newLink(a.hash("admin"))
		a.redeem(link)
	}
	if _, ok := a.find(oldest); ok || len(a.signIns.sessions) != maxSessions {
		t.Errorf("the oldest session works: %v; %d sessions, want %d", ok, len(a.signIns.sessions), maxSessions)
	}
}
