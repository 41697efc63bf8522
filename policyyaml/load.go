// SPDX-License-Identifier: Apache-2.0

// Package policyyaml loads policy files in YAML or JSON, with the same errors as mete check:
//
//	matcher, err := policyyaml.LoadFile("policy.yaml")
//	limiter, err := redisstore.NewLimiter(ctx, "redis://127.0.0.1:6379?prefix=shop:", matcher)
//
// If the contents are invalid, the error is an [Errors]. It reports every invalid field with its line and column,
// and a hint:
//
//	policy.yaml:7:11: /rules/0/algorithm_config/burst: must be above 0 (got -5)
//
// YAML follows the core schema of YAML 1.2 and is converted to JSON first. Both languages therefore have the same
// meaning: numbers keep their exact text, and yes and on are strings. The package rejects files that are not UTF-8,
// and YAML that JSON cannot express: keys that are not strings, tags and merge keys.
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

// MaxBytes bounds the size of a policy file, and of a YAML file with its aliases expanded.
const MaxBytes = policy.MaxFileBytes

// LoadFile reads and compiles the policy file at path, and the file with prices that it names, with the zero [policy.Options].
// For other options, use [Read], [Parse] and [PricesBeside]. If the contents are invalid, the error is an [Errors]. Any other error comes from reading the
// file.
func LoadFile(path string) (*policy.Matcher, error) {
	data, err := Read(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data, policy.Options{Prices: PricesBeside(path)})
}

// Load compiles the contents of a policy file in YAML or JSON, for files that the program embeds or downloads.
// Errors contain "policy" as the file name: see [Parse].
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

// ReadFrom returns the contents of r, at most [MaxBytes]. name is for errors.
func ReadFrom(r io.Reader, name string) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", name, err)
	case len(data) > MaxBytes:
		return nil, fmt.Errorf("read %s: larger than %d bytes, the maximum for a policy file", name, MaxBytes)
	}
	return data, nil
}

// Parse is like [Load], but errors contain the name of the file. The extensions .json, .yaml and .yml determine
// the language. Otherwise, the contents are JSON if they begin with a brace, and YAML if not. If the contents are
// invalid, the error is an [Errors].
func Parse(name string, data []byte, opts policy.Options) (*policy.Matcher, error) {
	var reader priceReader
	if opts.Prices != nil {
		reader.read, opts.Prices = opts.Prices, reader.prices
	}
	m, err := parse(name, data, "write at least one rule under rules:", func(data []byte) (*policy.Matcher, error) { return policytest.Load(data, opts) })
	return m, reader.place(err)
}

// parse loads the JSON form of a file. The hint is for an empty one.
func parse[T any](name string, data []byte, hint string, load func([]byte) (*T, error)) (*T, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, Errors{{File: name, Error: policy.Error{Reason: "the file is empty", Hint: hint}}}
	}
	if isJSON(name, data) {
		return parseJSON(name, data, load)
	}
	return parseYAML(name, data, load)
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

// compile loads the JSON form of a file. It returns its errors with the positions from locate, together with the
// errors of the conversion in found.
func compile[T any](name string, data []byte, load func([]byte) (*T, error), found Errors,
	locate func(paths []string) map[string]Place) (*T, error) {

	m, err := load(data)
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
			all = append(all, FileError{File: name, Line: at.Line, Column: at.Column, Error: e})
		}
	}
	slices.SortStableFunc(all, func(a, b FileError) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return nil, all
}

// foundAt reports whether found has an error at path. Other errors at that path are consequences of the replaced
// value.
func foundAt(found Errors, path string) bool {
	return slices.ContainsFunc(found, func(m FileError) bool { return path == m.Path })
}
