// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/metehq/mete/cmd/internal/policyfile"
	"github.com/metehq/mete/cmd/internal/policysign"
	"github.com/metehq/mete/cmd/internal/storeurl"
	"github.com/metehq/mete/policy"
)

// policyKeysFlag defines --policy-key, which may be repeated, and returns the paths.
func policyKeysFlag(fs *flagSet) *[]string {
	paths := new([]string)
	fs.Func("policy-key", "want the signature of each file to be by the public key in `FILE`; may be repeated", func(path string) error {
		*paths = append(*paths, path)
		return nil
	})
	return paths
}

// errUnsigned is the error of a policy that no signature can be beside.
var errUnsigned = errors.New("only a file can have a signature: --policy-key does not go with standard input or a database")

// readSigned is readPolicy for a file that must be signed, where there are keys.
func readSigned(ctx context.Context, std Streams, name string, keys policysign.Keys) (*policy.Matcher, error) {
	switch {
	case len(keys) == 0:
		return readPolicy(ctx, std, name)
	case name == "-" || storeurl.IsPostgres(name):
		return nil, fmt.Errorf("%s: %w", policyName(name), errUnsigned)
	}
	data, err := policyfile.Read(name)
	if err != nil {
		return nil, err
	}
	if err := keys.Check(name, data); err != nil {
		return nil, err
	}
	return policyfile.Parse(name, data, policy.Options{})
}
