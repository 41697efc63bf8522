// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/cmd/internal/bundle"
	"github.com/metehq/mete/cmd/internal/clientfacts"
	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/cmd/internal/policysign"
	"github.com/metehq/mete/cmd/internal/storeurl"
	"github.com/metehq/mete/pgstore/rules"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policyyaml"
	"github.com/metehq/mete/store"
)

const stdinName = "stdin"

// readPolicy compiles a policy file, standard input for "-", or the rules in a database.
func readPolicy(ctx context.Context, std Streams, name string) (*policy.Matcher, error) {
	opts, err := policyOptions()
	if err != nil {
		return nil, err
	}
	m, _, err := readContents(ctx, std, name, nil, opts)
	return m, err
}

// readContents compiles a policy like readPolicy and also returns the bytes of its file. If there are keys, the
// file must have a valid signature.
func readContents(ctx context.Context, std Streams, name string, keys policysign.Keys, opts policy.Options) (*policy.Matcher, []byte, error) {
	switch {
	case len(keys) > 0 && (name == "-" || storeurl.IsPostgres(name)):
		return nil, nil, fmt.Errorf("%s: %w", policyName(name), errUnsigned)
	case storeurl.IsPostgres(name):
		m, err := readRules(ctx, name, opts)
		return m, nil, err
	}
	opts.Prices = keys.PricesBeside(name) // beside standard input: in the current directory
	name, data, err := readPolicyFile(std, name)
	if err != nil {
		return nil, nil, err
	}
	if len(keys) > 0 {
		if err := keys.Check(name, data); err != nil {
			return nil, data, err
		}
	}
	m, err := parsePolicy(name, data, opts)
	return m, data, err
}

// readPolicyFile returns the contents of a policy file, or of standard input for "-", and the name for messages.
func readPolicyFile(std Streams, name string) (shown string, data []byte, err error) {
	if name == "-" {
		data, err = policyyaml.ReadFrom(std.In, "standard input")
		return stdinName, data, err
	}
	data, err = policyyaml.Read(name)
	return name, data, err
}

// parsePolicy compiles the contents of a policy file. If the file is a configuration of mete serve, the only error
// is a hint at the right command.
func parsePolicy(name string, data []byte, opts policy.Options) (*policy.Matcher, error) {
	m, err := policyyaml.Parse(name, data, opts)
	if err != nil && config.LooksLike(data) {
		return nil, policyyaml.Errors{{File: name, Error: policy.Error{
			Reason: "this looks like a configuration of mete serve, not like a policy",
			Hint:   "check it with 'mete serve --check --config " + name + "'",
		}}}
	}
	if err != nil && name != stdinName && isPriceList(name) {
		return nil, policyyaml.Errors{{File: name, Error: policy.Error{
			Reason: "this file has prices, and no rules", Hint: "check the policy that names it: prices: { file: ... }",
		}}}
	}
	return m, err
}

func policyExit(err error) int {
	switch {
	case err == nil:
		return exitOK
	case isPolicyError(err):
		return exitNo
	case errors.Is(err, store.ErrUnavailable):
		return exitUnreachable
	}
	return exitUsage
}

// isPolicyError reports whether err lists errors in a policy or rejects its signature.
func isPolicyError(err error) bool {
	_, file := errors.AsType[policyyaml.Errors](err)
	_, rows := errors.AsType[rules.Errors](err)
	return file || rows || errors.Is(err, policysign.ErrSignature)
}

// expandDirectories replaces each directory by the policy files in it.
func expandDirectories(names []string) (files []string, err error) {
	for _, name := range names {
		if info, err := os.Stat(name); name == "-" || storeurl.IsPostgres(name) || err != nil || !info.IsDir() {
			files = append(files, name)
			continue
		}
		before := len(files)
		err := filepath.WalkDir(name, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && path != name && strings.HasPrefix(d.Name(), "."):
				return fs.SkipDir
			case d.Type().IsRegular() && slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(path))) && !isPriceList(path):
				files = append(files, path)
			}
			return nil
		})
		if err == nil && len(files) == before {
			err = fmt.Errorf("%s: the directory has no .yaml, .yml or .json file", name)
		}
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

// isPriceList reports whether a file has prices of language models. The policies that name it check it.
func isPriceList(path string) bool {
	data, err := policyyaml.Read(path)
	if err != nil {
		return false
	}
	_, err = policyyaml.ParsePrices(path, data)
	return err == nil
}

// readRules compiles the rules in a database without creating tables.
func readRules(ctx context.Context, url string, opts policy.Options) (*policy.Matcher, error) {
	source, err := rules.Open(ctx, url, rules.Config{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer source.Close()
	m, _, err := source.Load(ctx, opts)
	return m, err
}

// policyName returns the name of a policy for output, without a password.
func policyName(name string) string {
	if storeurl.IsPostgres(name) {
		return storeurl.Shown(name)
	}
	if bundle.IsURL(name) {
		return bundle.ShownSetting(name)
	}
	return name
}

// hashKeyVar is the name of the environment variable that holds the servers' hash_key. There is no flag, because other
// users could see it in the list of processes.
const hashKeyVar = "METE_HASH_KEY"

// fixedHashKey replaces an unset hashKeyVar, so that check, replay and explain always give the same results. It is
// not a secret, because its hashes stay in the process.
const fixedHashKey = "the key of check, replay and explain"

// policyOptions returns the options of commands that decide without a server. They read the same variables as servers.
func policyOptions() (policy.Options, error) {
	key := os.Getenv(hashKeyVar)
	if key == "" {
		key = fixedHashKey
	}
	facts, err := environmentFacts()
	facts.Check = nil // tests and requests may contain the attributes
	return policy.Options{HashKey: []byte(key), Facts: facts}, err
}

// environmentFacts opens the files that variables name. They stay open until the program ends.
var environmentFacts = sync.OnceValues(func() (policy.Facts, error) {
	files := config.GeoIP{Country: os.Getenv("METE_GEOIP_COUNTRY"), ASN: os.Getenv("METE_GEOIP_ASN"), TorExits: os.Getenv("METE_GEOIP_TOR_EXITS")}
	facts, _, err := clientfacts.Open(files, nil, func(setting string) string {
		return "METE_" + strings.ToUpper(strings.ReplaceAll(setting, ".", "_"))
	})
	return facts, err
})

// factsNote returns a note about the first attribute of m that requests do not have because its file is missing.
func factsNote(m *policy.Matcher) string {
	facts, err := environmentFacts()
	if err != nil {
		return ""
	}
	for _, a := range clientfacts.Missing(m, facts) {
		return fmt.Sprintf("no request has %v: %v", a, facts.Check(a))
	}
	return ""
}

// hashKeyNote returns a note about the first rule in m that depends on hashed keys while hashKeyVar is not set.
// Servers apply such a rule to other keys. The note is empty if there is no such rule.
func hashKeyNote(m *policy.Matcher) string {
	if os.Getenv(hashKeyVar) != "" {
		return ""
	}
	for _, r := range m.Rules() {
		if !slices.ContainsFunc(r.LimitKeys, policy.Attribute.IsSecret) {
			continue
		}
		anchored := slices.ContainsFunc(r.Limits, func(l policy.Limit) bool { return l.Bucket.Anchor() == bucket.AnchorKey })
		switch {
		case r.Mode.IsPartial():
			return fmt.Sprintf("rule %q selects %v of its keys by a hash: servers select other keys unless %s is their hash_key", r.Name, r.Mode, hashKeyVar)
		case anchored && r.Mode != policy.ModeOff:
			return fmt.Sprintf("the windows of rule %q start at times that depend on a hash of the key: servers use other times unless %s is their hash_key", r.Name, hashKeyVar)
		}
	}
	return ""
}
