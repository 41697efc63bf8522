// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"

	"github.com/metehq/mete/cmd/internal/bundle"
	"github.com/metehq/mete/cmd/internal/storeurl"
	"github.com/metehq/mete/pgstore/rules"
	"github.com/metehq/mete/policy"
)

// readRules compiles the rules in a database, and makes nothing there.
func readRules(ctx context.Context, url string, opts policy.Options) (*policy.Matcher, error) {
	source, err := rules.Open(ctx, url, rules.Config{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer source.Close()
	m, _, err := source.Load(ctx, opts)
	return m, err
}

// policyName is how a policy is called in what people read: without a password.
func policyName(name string) string {
	if storeurl.IsPostgres(name) {
		return storeurl.Shown(name)
	}
	if bundle.IsURL(name) {
		return bundle.ShownSetting(name)
	}
	return name
}
