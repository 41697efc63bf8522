// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"crypto/ed25519"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/metehq/mete/cmd/internal/policysign"
	"github.com/metehq/mete/internal/atomicfile"
	"github.com/metehq/mete/policyyaml"
)

const signAbout = `
Signs policy files for 'mete serve --policy-key PUBLIC.pem'. The signature of
policy.yaml is policy.yaml.sig, in the same directory. It covers the exact
bytes: sign again after every change. If the policy names a file with prices,
sign that file, too. Its date must not go back.

The key is an Ed25519 key in PEM, from --new-key or from
"openssl genpkey -algorithm ed25519". Keep the private key where you release
policies, and never on a server. To rotate keys, start servers with both keys
(--policy-key twice), sign with the new key, and then remove the old one.

Exit codes:
  0  done
  2  wrong usage, or a file cannot be read or written
`

type signedDocument struct {
	Signatures []string `json:"signatures,omitempty"`
	PrivateKey string   `json:"private_key,omitempty"`
	PublicKey  string   `json:"public_key,omitempty"`
}

func newSignCommand(std Streams) *cobra.Command {
	var policies []string
	var keyFile, newKey, format string
	cmd := &cobra.Command{
		Use: "sign [flags] POLICY ...", Short: "Sign a policy file, or make a key pair", Long: signAbout,
		RunE: func(_ *cobra.Command, args []string) error {
			files := append(policies, args...)
			switch {
			case newKey != "" && (keyFile != "" || len(files) > 0):
				return usageError("--new-key makes a key and signs nothing: sign with --private-key afterwards")
			case newKey != "":
				return writeKeyPair(std, newKey, format)
			case keyFile == "":
				return usageError("no key given: --private-key FILE; --new-key NAME makes one")
			case len(files) == 0:
				return usageError("no policy file given")
			}
			return signFiles(std, keyFile, files, format)
		},
	}
	addFormat(cmd, &format, "text", "json")
	cmd.Flags().StringArrayVar(&policies, "policy", nil, "sign the policy `FILE`, like an argument; may be repeated")
	cmd.Flags().StringVar(&keyFile, "private-key", "", "sign with the private key in `FILE`")
	cmd.Flags().StringVar(&newKey, "new-key", "", "make a key pair: the private key in `NAME`.pem, the public key in NAME.pub.pem")
	completePolicy(cmd)
	return cmd
}

// signFiles signs files and prints the names of the signatures, including those written before an error.
func signFiles(std Streams, keyFile string, files []string, format string) error {
	key, err := policysign.ReadPrivateKey(keyFile)
	if err != nil {
		return fail(exitUsage, err)
	}
	var done signedDocument
	for _, file := range files {
		if err := signFile(key, file); err != nil {
			return fail(exitUsage, err)
		}
		done.Signatures = append(done.Signatures, file+policysign.Suffix)
		if format == "text" {
			fmt.Fprintln(std.Out, file+policysign.Suffix)
		}
	}
	if format == "json" {
		return writeJSON(std.Out, done)
	}
	return nil
}

func writeKeyPair(std Streams, name, format string) error {
	private, public := name+".pem", name+".pub.pem"
	if err := policysign.CreateKeyPair(private, public); err != nil {
		return fail(exitUsage, err)
	}
	if format == "json" {
		return writeJSON(std.Out, signedDocument{PrivateKey: private, PublicKey: public})
	}
	_, err := fmt.Fprintf(std.Out, "%s  private: mete sign --private-key %s policy.yaml\n%s  public: mete serve --policy-key %s --policy policy.yaml\n",
		private, private, public, public)
	return err
}

// signFile writes the signature of a file next to it, atomically, because a server may be reading it.
func signFile(key ed25519.PrivateKey, path string) error {
	data, err := policyyaml.Read(path)
	if err != nil {
		return err
	}
	return atomicfile.Write(path+policysign.Suffix, policysign.Sign(key, data), 0o644)
}
