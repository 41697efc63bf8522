// SPDX-License-Identifier: Apache-2.0

package cli

import "errors"

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
