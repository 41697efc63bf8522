// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/client"
)

func TestClient_Reload(t *testing.T) {
	var broken error
	c := guarded(t, func(context.Context) error { return broken }).WithToken("chief")
	if got, err := c.Reload(t.Context()); err != nil || got != (api.Reload{Rules: 1}) {
		t.Errorf("got %+v and error %v, want what is in force: one rule", got, err)
	}
	broken = errors.New("policy.yaml:3: no such algorithm")
	_, err := c.Reload(t.Context())
	e, ok := errors.AsType[*client.Error](err)
	if !ok || e.Kind != client.KindRefused || e.Status != 422 || !strings.Contains(err.Error(), "policy.yaml:3: no such algorithm") {
		t.Errorf("a broken policy: error %v, want a refusal that says so", err)
	}
}
