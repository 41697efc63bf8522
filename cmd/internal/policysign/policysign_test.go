// SPDX-License-Identifier: Apache-2.0

package policysign_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/metehq/mete/cmd/internal/policysign"
)

const text = "rules: []\n"

// pair makes a new key and returns the paths of its halves.
func pair(t *testing.T) (private, public string) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "key")
	if err := policysign.CreateKeyPair(name+".pem", name+".pub.pem"); err != nil {
		t.Fatal(err)
	}
	return name + ".pem", name + ".pub.pem"
}

// signed writes a file with its signature and returns its path.
func signed(t *testing.T, private, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, path, text)
	write(t, path+policysign.Suffix, sign(t, private, text))
	return path
}

func sign(t *testing.T, private, text string) string {
	t.Helper()
	key, err := policysign.ReadPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(policysign.Sign(key, []byte(text)))
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func readKeys(t *testing.T, paths ...string) policysign.Keys {
	t.Helper()
	keys, err := policysign.ReadKeys(paths...)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// opensslKey is the test key for the signature in testdata. openssl created it.
const opensslKey = "MC4CAQAwBQYDK2VwBCIEIGXiBhDpBTv4+Nq4QEOJ2O6R4ciqMJ6Jdta0rSZDa5Ps"

// openssl created the files in testdata, as the package documentation describes.
func TestCheck_AgreesWithOpenSSL(t *testing.T) {
	data, err := os.ReadFile("testdata/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := readKeys(t, "testdata/public.pem").Check("testdata/policy.yaml", data); err != nil {
		t.Error(err)
	}
	want, err := os.ReadFile("testdata/policy.yaml.sig")
	if err != nil {
		t.Fatal(err)
	}
	private := filepath.Join(t.TempDir(), "private.pem")
	write(t, private, "-----BEGIN "+"PRIVATE KEY-----\n"+opensslKey+"\n-----END PRIVATE KEY-----\n")
	if got := sign(t, private, string(data)); got != string(want) {
		t.Errorf("signed with the same key: got\n%s\nwant what openssl says\n%s", got, want)
	}
}

func TestCheck_AnyOfTheKeys(t *testing.T) {
	oldPrivate, oldPublic := pair(t)
	newPrivate, newPublic := pair(t)
	both := filepath.Join(t.TempDir(), "both.pem")
	a, _ := os.ReadFile(oldPublic)
	b, _ := os.ReadFile(newPublic)
	write(t, both, "the old one\n"+string(a)+"the new one\n"+string(b))
	for _, private := range []string{oldPrivate, newPrivate} {
		path := signed(t, private, text)
		for _, keys := range []policysign.Keys{readKeys(t, both), readKeys(t, oldPublic, newPublic)} {
			if err := keys.Check(path, []byte(text)); err != nil {
				t.Error(err)
			}
		}
	}
	if err := readKeys(t, newPublic).Check(signed(t, oldPrivate, text), []byte(text)); !errors.Is(err, policysign.ErrSignature) {
		t.Errorf("by a key that was taken away: %v, want ErrSignature", err)
	}
	if err := (policysign.Keys{}).Check(signed(t, oldPrivate, text), []byte(text)); !errors.Is(err, policysign.ErrSignature) {
		t.Errorf("without keys: %v, want ErrSignature", err)
	}
}

func TestCheck_RefusesSignatures(t *testing.T) {
	private, public := pair(t)
	keys, good := readKeys(t, public), sign(t, private, text)
	head, code, _ := strings.Cut(good, "\n")
	for what, signature := range map[string]string{
		"empty":            "",
		"the header alone": head + "\n",
		"no header":        code,
		"another form":     strings.Replace(good, "v1", "v2", 1),
		"another kind":     strings.Replace(good, "ed25519", "rsa", 1),
		"a space":          " " + good,
		"cut":              good[:len(good)-4],
		"longer":           head + "\n" + "AAAA" + code,
		"two":              good + code,
		// Both letters stand in for any of code: it need not contain "+" or "/".
		"another alphabet": head + "\n" + "-_" + code[2:],
		"of other bytes":   sign(t, private, text+"\n"),
		"huge":             good + strings.Repeat("\n", 64<<10),
		"zeros":            head + "\n" + strings.Repeat("A", 86) + "==\n",
	} {
		path := filepath.Join(t.TempDir(), "policy.yaml")
		write(t, path+policysign.Suffix, signature)
		if err := keys.Check(path, []byte(text)); !errors.Is(err, policysign.ErrSignature) {
			t.Errorf("%s: %v, want ErrSignature", what, err)
		}
	}
	err := keys.Check(filepath.Join(t.TempDir(), "policy.yaml"), []byte(text))
	if !errors.Is(err, policysign.ErrSignature) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no signature: %v, want ErrSignature and fs.ErrNotExist", err)
	}
	path := signed(t, private, text)
	write(t, path+policysign.Suffix, strings.ReplaceAll(good, "\n", "\r\n"))
	if err := keys.Check(path, []byte(text)); err != nil {
		t.Errorf("with line ends of Windows in the signature: %v", err)
	}
	for i := range text {
		changed := text[:i] + string(text[i]+1) + text[i+1:]
		if err := keys.Check(path, []byte(changed)); !errors.Is(err, policysign.ErrSignature) {
			t.Errorf("%q in place of %q: %v, want ErrSignature", changed, text, err)
		}
	}
}

func TestReadKeys_RefusesFiles(t *testing.T) {
	private, public := pair(t)
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ecPublic, _ := x509.MarshalPKIXPublicKey(ec.Public())
	ecPrivate, _ := x509.MarshalPKCS8PrivateKey(ec)
	block := func(kind string, der []byte) string {
		path := filepath.Join(t.TempDir(), "key.pem")
		write(t, path, string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})))
		return path
	}
	empty := filepath.Join(t.TempDir(), "empty.pem")
	write(t, empty, "no key here")
	for path, want := range map[string]string{
		private:                                    "this is a private key",
		empty:                                      "no PEM block",
		block("PUBLIC KEY", ecPublic):              "not an Ed25519 public key",
		block("PUBLIC KEY", nil):                   "not an Ed25519 public key",
		block("CERTIFICATE", nil):                  `type "CERTIFICATE"`,
		filepath.Join(t.TempDir(), "missing"):      "no such file",
		block("PUBLIC KEY", make([]byte, 128<<10)): "larger than",
	} {
		if _, err := policysign.ReadKeys(public, path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("public key %s: %v, want %q", path, err, want)
		}
	}
	for path, want := range map[string]string{
		public:                               "this is a public key",
		empty:                                "no PEM block",
		block("PRIVATE KEY", ecPrivate):      "not an Ed25519 private key",
		block("PRIVATE KEY", nil):            "not an Ed25519 private key",
		block("ENCRYPTED PRIVATE KEY", nil):  "decrypt it first",
		block("EC PRIVATE KEY", nil):         `type "EC PRIVATE KEY"`,
		filepath.Join(t.TempDir(), "absent"): "no such file",
	} {
		if _, err := policysign.ReadPrivateKey(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("private key %s: %v, want %q", path, err, want)
		}
	}
}

// A key is never overwritten, and the private half is its owner's.
func TestNewPair(t *testing.T) {
	private, public := pair(t)
	before, err := os.ReadFile(private)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(private); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("the private key has mode %v, %v; want 0600", info.Mode(), err)
	}
	if err := policysign.CreateKeyPair(private, public); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second time: %v, want fs.ErrExist", err)
	}
	if after, _ := os.ReadFile(private); string(after) != string(before) {
		t.Error("the private key was overwritten")
	}
	if err := readKeys(t, public).Check(signed(t, private, text), []byte(text)); err != nil {
		t.Errorf("a new pair: %v", err)
	}
}
