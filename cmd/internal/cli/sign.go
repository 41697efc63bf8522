// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/metehq/mete/cmd/internal/policysign"
	"github.com/metehq/mete/internal/atomicfile"
	"github.com/metehq/mete/policyyaml"
)

const signAbout = `
Signs policy files, so that 'mete serve --policy-key PUBLIC.pem' takes them. The
signature of policy.yaml is written to policy.yaml.sig: put it where the policy
is. It is of the exact bytes: sign again after every change.

The key is an Ed25519 key in PEM, as --new-key makes it, or
"openssl genpkey -algorithm ed25519". The private half belongs where policies
are released, and never on a server. To change keys, have servers take both with
--policy-key twice, sign with the new one, and then take the old one away.

The exit code is 0, or 2 if something cannot be read or written.
`

// signUsage stands behind the name.
const signUsage = "--key PRIVATE.pem FILE ... | --new-key NAME"

// sign is "mete sign".
func sign(_ context.Context, std Streams, args []string) int {
	fs := newFlags(std, "sign")
	keyFile := fs.String("key", "", "sign with the private key in `FILE`")
	newKey := fs.String("new-key", "", "make a key: the private half in `NAME`.pem, the public one in NAME.pub.pem")
	files, code, ok := fs.parse(args)
	switch {
	case !ok:
		return code
	case *newKey != "" && (*keyFile != "" || len(files) > 0):
		return fs.usageError("--new-key makes a key and signs nothing: sign with --key afterwards")
	case *newKey != "":
		return makePair(std, *newKey)
	case *keyFile == "":
		return fs.usageError("no key given: --key FILE; --new-key NAME makes one")
	case len(files) == 0:
		return fs.usageError("no policy file given")
	}
	key, err := policysign.ReadPrivateKey(*keyFile)
	if err != nil {
		return fail(std, exitUsage, "sign", err)
	}
	for _, file := range files {
		if err := signFile(key, file); err != nil {
			return fail(std, exitUsage, "sign", err)
		}
		fmt.Fprintln(std.Out, file+policysign.Suffix)
	}
	return exitOK
}

// makePair makes a key and says what each half is for.
func makePair(std Streams, name string) int {
	private, public := name+".pem", name+".pub.pem"
	if err := policysign.NewPair(private, public); err != nil {
		return fail(std, exitUsage, "sign", err)
	}
	fmt.Fprintf(std.Out, "%s  private: mete sign --key %s policy.yaml\n%s  public: mete serve --policy-key %s --policy policy.yaml\n",
		private, private, public, public)
	return exitOK
}

// signFile writes the signature of a file beside it, in one step: a server may be
// reading it.
func signFile(key ed25519.PrivateKey, path string) error {
	data, err := policyyaml.Read(path)
	if err != nil {
		return err
	}
	path += policysign.Suffix
	next, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	return atomicfile.Replace(path, next, func(w io.Writer) error {
		_, err := w.Write(policysign.Sign(key, data))
		return errors.Join(err, next.Chmod(0o644))
	})
}
