// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/respapi"
)

// Replies to wrong passwords wait beyond a burst, by address. Valid ones never do.
func TestAuthenticateUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := knowing(t)
		a.setTokens([]config.AdminToken{{Name: "r", Role: httpapi.RoleRead, Token: "read"}, {Name: "o", Role: httpapi.RoleOperate, Token: "operate"}, {Name: "c", Role: httpapi.RoleConfigure, Token: "configure"}})
		var err error
		if a.wrong, err = perSecond(wrongRate, wrongBurst); err != nil {
			t.Fatal(err)
		}
		send := func(ctx context.Context, password, address string) (respapi.Role, bool, time.Duration) {
			began := time.Now()
			role, ok := a.authenticateUser(ctx, respapi.Login{User: "any", Password: password, Address: address})
			return role, ok, time.Since(began)
		}
		const here, elsewhere = "192.0.2.1:1000", "192.0.2.2:1000"
		for i := range wrongBurst {
			if role, ok, took := send(t.Context(), fmt.Sprint("wrong", i), here); role != respapi.RoleNone || ok || took != 0 {
				t.Errorf("wrong password %d: role %v, %t, after %v; want a rejection without a wait", i, role, ok, took)
			}
		}
		if _, ok, took := send(t.Context(), strings.Repeat("x", config.MaxToken+1), here); ok || took <= 0 || took > time.Second {
			t.Errorf("one more: %t after %v; want a rejection after a wait of at most 1s", ok, took)
		}
		if _, ok, took := send(t.Context(), "wrong", elsewhere); ok || took != 0 {
			t.Errorf("another address: %t after %v; want a rejection without a wait", ok, took)
		}
		for password, want := range map[string]respapi.Role{"read": respapi.RoleRead, "operate": respapi.RoleOperate, "configure": respapi.RoleOperate} {
			if role, ok, took := send(t.Context(), password, here); role != want || !ok || took != 0 {
				t.Errorf("password %s: role %v, %t, after %v; want %v without a wait", password, role, ok, took, want)
			}
		}
		stopped, cancel := context.WithCancel(t.Context())
		cancel()
		if _, ok, took := send(stopped, "wrong", here); ok || took != 0 {
			t.Errorf("a stopped server: %t after %v; want a rejection without a wait", ok, took)
		}
	})
}
