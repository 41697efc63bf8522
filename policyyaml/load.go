// SPDX-License-Identifier: Apache-2.0

// Package policyyaml loads policy files as people write them, in YAML or JSON. They are
// the files that mete check reads, with the same errors:
//
//	matcher, err := policyyaml.LoadFile("policy.yaml")
//	limiter, err := redisstore.NewLimiter(ctx, "redis://127.0.0.1:6379?prefix=shop:", matcher)
//
// An error about the contents is an [Errors]. It has every invalid field, each with its
// line and column, and a hint:
//
//	policy.yaml:7:11: /rules/0/algorithm_config/burst: must be above 0 (got -5)
//
// YAML is read by the core schema of YAML 1.2 and becomes JSON first, so both have the same
// meaning: numbers keep their exact text, yes and on are words, and only the author of the
// file decides which value is a string. YAML that JSON cannot express (keys that are not
// strings, tags, merge keys) is refused, and so are files that are not in UTF-8.
package policyyaml

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policytest"
)

// MaxBytes bounds the size of a policy file, and that of a YAML file with its
// aliases written out. Larger ones are refused.
const MaxBytes = policy.MaxFileBytes

// LoadFile reads and compiles the policy file at path, with the zero [policy.Options]. An
// error about its contents is an [Errors], and any other is about reading the file. For
// other options there are [Read] and [Parse].
func LoadFile(path string) (*policy.Matcher, error) {
	data, err := Read(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data, policy.Options{})
}

// Load compiles the contents of a policy file in YAML or JSON, for files that the program
// embeds or gets elsewhere. Its errors name the file policy: see [Parse].
func Load(data []byte, opts policy.Options) (*policy.Matcher, error) {
	return Parse("policy", data, opts)
}

// Read returns the contents of the policy file at path, at most [MaxBytes].
func Read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadFrom(f, path)
}

// ReadFrom returns what r holds, at most [MaxBytes]. The name is for errors.
func ReadFrom(r io.Reader, name string) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", name, err)
	case len(data) > MaxBytes:
		return nil, fmt.Errorf("read %s: larger than %d bytes, the most a policy file may have", name, MaxBytes)
	}
	return data, nil
}

// Parse is [Load] with a name for the file, which may be any text. The name is a part of
// the errors. One that ends in .json, .yaml or .yml determines the language. Otherwise the
// contents are JSON if they begin with a brace, and YAML if not. The error is an [Errors].
func Parse(name string, data []byte, opts policy.Options) (*policy.Matcher, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, Errors{{File: name, Error: policy.Error{
			Reason: "the file is empty", Hint: "write at least one rule under rules:"}}}
	}
	if isJSON(name, data) {
		return parseJSON(name, data, opts)
	}
	return parseYAML(name, data, opts)
}

func isJSON(name string, data []byte) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".json":
		return true
	case ".yaml", ".yml":
		return false
	}
	return bytes.HasPrefix(bytes.TrimSpace(data), []byte("{"))
}

// compile loads the JSON form of a policy. It returns its mistakes with their
// places, which the caller knows how to find, and in any case those that were
// found on the way to it.
func compile(name string, data []byte, opts policy.Options, found Errors,
	locate func(paths []string) map[string]Place) (*policy.Matcher, error) {

	m, err := policytest.Load(data, opts)
	var mistakes policy.Errors
	if err != nil && !errors.As(err, &mistakes) {
		mistakes = policy.Errors{{Reason: strings.TrimPrefix(err.Error(), "policy: ")}}
	}
	if len(mistakes) == 0 && len(found) == 0 {
		return m, nil
	}
	paths := make([]string, len(mistakes))
	for i, e := range mistakes {
		paths[i] = e.Path
	}
	places := locate(paths)
	all := slices.Clone(found)
	for _, e := range mistakes {
		if !foundAt(found, e.Path) {
			at := nearest(places, e.Path)
			all = append(all, Mistake{File: name, Line: at.Line, Column: at.Column, Error: e})
		}
	}
	slices.SortStableFunc(all, func(a, b Mistake) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return nil, all
}

// foundAt reports whether there is a mistake at path already: then what the
// compiler says of what was put in its place is a consequence of it.
func foundAt(found Errors, path string) bool {
	return slices.ContainsFunc(found, func(m Mistake) bool { return path == m.Path })
}
