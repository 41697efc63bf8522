// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/metehq/mete/client"
	"github.com/metehq/mete/httpapi"
)

// roles are the roles of the known tokens.
var roles = map[string]httpapi.Role{"": httpapi.RoleNone, "Bearer reader": httpapi.RoleRead, "Bearer operator": httpapi.RoleOperate, "Bearer chief": httpapi.RoleConfigure}

// guarded is a client of an API for administrators that looks at tokens.
func guarded(t *testing.T, reload func(context.Context) error) *client.Client {
	t.Helper()
	return serverOf(t, httpapi.Config{
		Admin: true, Reload: reload,
		Role: func(r *http.Request) httpapi.Role { return roles[r.Header.Get("Authorization")] },
	})
}

func TestClient_WithToken(t *testing.T) {
	ctx, c := t.Context(), guarded(t, func(context.Context) error { return nil })
	for token, want := range map[string]struct{ peek, reset, reload int }{
		"":         {401, 401, 401},
		"nobody":   {401, 401, 401},
		"reader":   {0, 403, 403},
		"operator": {0, 0, 403},
		"chief":    {0, 0, 0},
	} {
		asks := c.WithToken(token)
		_, err := asks.Peek(ctx, request(0))
		wantStatus(t, token+": peek", err, want.peek)
		wantStatus(t, token+": reset", asks.Reset(ctx, request(0)), want.reset)
		_, err = asks.Reload(ctx)
		wantStatus(t, token+": reload", err, want.reload)
	}
	if err := c.Reset(ctx, request(0)); err == nil {
		t.Error("the client without a token got one")
	}
	if _, err := c.WithToken("chief").WithToken("").Peek(ctx, request(0)); err == nil {
		t.Error("an empty token is that of before")
	}
}

// wantStatus fails t unless err is a refusal with that status, or none for 0.
func wantStatus(t *testing.T, what string, err error, status int) {
	t.Helper()
	e, ok := errors.AsType[*client.Error](err)
	switch {
	case status == 0 && err != nil, status != 0 && (!ok || e.Kind != client.KindRefused || e.Status != status):
		t.Errorf("%s: got error %v, want status %d", what, err, status)
	case status == 401 && !strings.Contains(err.Error(), "401 Unauthorized: a token with the role "),
		status == 403 && !strings.Contains(err.Error(), "403 Forbidden: the role "):
		t.Errorf("%s: %v: want what is missing", what, err)
	}
}

func TestClient_TokenStaysHome(t *testing.T) {
	var got []string
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusTeapot)
	}))
	defer elsewhere.Close()
	away := strings.Replace(elsewhere.URL, "127.0.0.1", "localhost", 1)
	c := newClient(t, http.RedirectHandler(away, http.StatusTemporaryRedirect)).WithToken("secret")
	_, err := c.Peek(t.Context(), request(0))
	if err == nil || strings.Contains(err.Error(), "secret") || len(got) != 1 || got[0] != "" {
		t.Errorf("another host got %q, error %v; want no token, and an error without it", got, err)
	}
}
