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

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/cmd/internal/bundle"
	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/cmd/internal/policysign"
	"github.com/metehq/mete/cmd/internal/storeurl"
	"github.com/metehq/mete/pgstore/rules"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policyyaml"
	"github.com/metehq/mete/store"
)

// stdinName stands for a file name in messages.
const stdinName = "stdin"

// readPolicy compiles the named policy file, standard input for "-", or the rules in
// a database.
func readPolicy(ctx context.Context, std Streams, name string) (*policy.Matcher, error) {
	m, _, err := readContents(ctx, std, name, nil, policyOptions())
	return m, err
}

// readContents is readPolicy with options, for a file that must be signed if there are keys.
// It returns the contents of a file, too.
func readContents(ctx context.Context, std Streams, name string, keys policysign.Keys, opts policy.Options) (*policy.Matcher, []byte, error) {
	switch {
	case len(keys) > 0 && (name == "-" || storeurl.IsPostgres(name)):
		return nil, nil, fmt.Errorf("%s: %w", policyName(name), errUnsigned)
	case storeurl.IsPostgres(name):
		m, err := readRules(ctx, name, opts)
		return m, nil, err
	}
	name, data, err := policyText(std, name)
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

// policyText returns the contents of the named policy file, or of standard input for "-",
// and the name that messages have.
func policyText(std Streams, name string) (shown string, data []byte, err error) {
	if name == "-" {
		data, err = policyyaml.ReadFrom(std.In, "standard input")
		return stdinName, data, err
	}
	data, err = policyyaml.Read(name)
	return name, data, err
}

// parsePolicy compiles the contents of a policy file. Those of a configuration file
// have one mistake: which file they are.
func parsePolicy(name string, data []byte, opts policy.Options) (*policy.Matcher, error) {
	m, err := policyyaml.Parse(name, data, opts)
	if err != nil && config.LooksLike(data) {
		return nil, policyyaml.Errors{{File: name, Error: policy.Error{
			Reason: "this is no policy, but looks like a configuration of mete serve",
			Hint:   "check that with 'mete serve --check --config " + name + "'",
		}}}
	}
	return m, err
}

// policyExit is the exit code of what readPolicy returns.
func policyExit(err error) int {
	switch {
	case err == nil:
		return exitOK
	case brokenPolicy(err):
		return exitNo
	case errors.Is(err, store.ErrUnavailable):
		return exitUnreachable
	}
	return exitUsage
}

// brokenPolicy reports whether an error is the list of mistakes in a policy, or that
// it is not signed.
func brokenPolicy(err error) bool {
	_, file := errors.AsType[policyyaml.Errors](err)
	_, rows := errors.AsType[rules.Errors](err)
	return file || rows || errors.Is(err, policysign.ErrSignature)
}

// policiesIn puts the policy files below them in the place of directories.
func policiesIn(names []string) (files []string, err error) {
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
			case d.Type().IsRegular() && slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(path))):
				files = append(files, path)
			}
			return nil
		})
		if err == nil && len(files) == before {
			err = fmt.Errorf("%s: no .yaml, .yml or .json file is in it", name)
		}
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

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

// hashKeyVar is the environment variable with the hash_key of the servers. A flag
// would show it to everybody on the machine.
const hashKeyVar = "METE_HASH_KEY"

// fixedHashKey takes the place of hashKeyVar. It is no secret: hashes by it stay in the
// process, and make check, replay and explain come out the same every time.
const fixedHashKey = "the key of check, replay and explain"

// policyOptions are those of policies that no server has loaded.
func policyOptions() policy.Options {
	key := os.Getenv(hashKeyVar)
	if key == "" {
		key = fixedHashKey
	}
	return policy.Options{HashKey: []byte(key)}
}

// hashKeyNote says which rule of m treats other keys otherwise on the servers, as it goes
// by hashed keys and hashKeyVar is not set. It is empty where no rule does.
func hashKeyNote(m *policy.Matcher) string {
	if os.Getenv(hashKeyVar) != "" {
		return ""
	}
	for _, r := range m.Rules() {
		if !slices.ContainsFunc(r.LimitKeys, policy.Attribute.Secret) {
			continue
		}
		anchored := slices.ContainsFunc(r.Limits, func(l policy.Limit) bool { return l.Bucket.Anchor() == bucket.AnchorKey })
		switch {
		case r.Mode.Partial():
			return fmt.Sprintf("rule %q is in force for %v of its keys, which are hashed: the servers choose others, unless %s is their hash_key", r.Name, r.Mode, hashKeyVar)
		case anchored && r.Mode != policy.ModeOff:
			return fmt.Sprintf("the windows of rule %q begin by its keys, which are hashed: on the servers they begin otherwise, unless %s is their hash_key", r.Name, hashKeyVar)
		}
	}
	return ""
}
