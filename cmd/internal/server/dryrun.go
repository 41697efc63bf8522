// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/metehq/mete/cmd/internal/bundle"
	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/cmd/internal/policysign"
	"github.com/metehq/mete/cmd/internal/storeurl"
	"github.com/metehq/mete/policy"
)

// Check reads the files that a server with these settings would begin with, and
// opens nothing: neither its store nor its addresses. The policy is nil where it is in
// a database, or at an address. The errors are those of [New].
func Check(ctx context.Context, c config.Config) (*policy.Matcher, error) {
	for _, t := range []struct {
		setting string
		files   config.TLS
	}{{"tls", c.TLS}, {"admin_tls", c.AdminTLS}} {
		if _, err := newCertificates(t.files, slog.New(slog.DiscardHandler)); err != nil {
			return nil, fmt.Errorf("%s: %w", t.setting, err)
		}
	}
	if storeurl.IsPostgres(c.Policy) {
		return nil, nil
	}
	if bundle.IsURL(c.Policy) {
		_, err := policysign.ReadKeys(c.PolicyKeys...)
		if err != nil {
			err = fmt.Errorf("policy key: %w", err)
		}
		return nil, err
	}
	source := fileSource{path: c.Policy, keyFiles: c.PolicyKeys}
	return source.load(ctx)
}
