// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Tokens is an amount of tokens in thousandths: 500 is half a token.
type Tokens int64

const (
	// Token is one whole token.
	Token Tokens = 1000

	// MaxTokens is the largest amount: 2^53 − 1 thousandths, about nine trillion tokens. Larger integers are
	// inexact in Lua and JavaScript.
	MaxTokens Tokens = 1<<53 - 1
)

// ErrTokens is wrapped by the errors of [ParseTokens].
var ErrTokens = errors.New("bucket: invalid amount of tokens")

// errDigits: a decimal number has more digits than fit in an int64.
var errDigits = errors.New("too many digits")

func (t Tokens) Whole() int64 {
	whole := int64(t / Token)
	if t%Token < 0 {
		whole--
	}
	return whole
}

// String formats t as a decimal number of tokens: "20", "0.5".
func (t Tokens) String() string {
	sign, u := "", uint64(t)
	if t < 0 {
		sign, u = "-", -u
	}
	s := sign + strconv.FormatUint(u/uint64(Token), 10)
	if frac := u % uint64(Token); frac != 0 {
		s += "." + strings.TrimRight(fmt.Sprintf("%03d", frac), "0")
	}
	return s
}

// ParseTokens parses a decimal number of tokens such as "20", "0.5" or "1e3". It never rounds. It rejects fractions
// of a thousandth, signs, and amounts above [MaxTokens].
func ParseTokens(s string) (Tokens, error) {
	digits, scale, err := parseDecimal(s)
	if err != nil {
		return 0, err
	}
	for ; scale > 3; scale-- {
		if digits%10 != 0 {
			return 0, fmt.Errorf("%w: %q is finer than a thousandth of a token", ErrTokens, s)
		}
		digits /= 10
	}
	for ; scale < 3; scale++ {
		if digits *= 10; digits > int64(MaxTokens) {
			return 0, fmt.Errorf("%w: %q is above %v", ErrTokens, s, MaxTokens)
		}
	}
	return Tokens(digits), nil
}

// parseDecimal parses an unsigned decimal number, with an optional fraction and exponent, as digits·10^−scale
// with as few digits as possible. Digits are below 2^53, and scale is within ±maxScale.
func parseDecimal(s string) (digits int64, scale int, err error) {
	mantissa, exponent, hasExp := strings.Cut(strings.ToLower(s), "e")
	if hasExp {
		scale, err = strconv.Atoi(exponent)
		switch {
		case errors.Is(err, strconv.ErrSyntax):
			return 0, 0, fmt.Errorf("%w: %q is not a decimal number", ErrTokens, s)
		case err != nil || scale < -maxScale || scale > maxScale:
			return 0, 0, fmt.Errorf("%w: %q has an exponent beyond ±%d", ErrTokens, s, maxScale)
		}
		scale = -scale
	}
	if strings.HasPrefix(mantissa, "-") || strings.HasPrefix(mantissa, "+") {
		return 0, 0, fmt.Errorf("%w: %q has a sign: write a number without one", ErrTokens, s)
	}
	whole, frac, hasPoint := strings.Cut(mantissa, ".")
	if whole == "" || hasPoint && frac == "" {
		return 0, 0, fmt.Errorf("%w: %q is not a decimal number", ErrTokens, s)
	}
	frac = strings.TrimRight(frac, "0")
	scale += len(frac)
	for _, c := range []byte(whole + frac) {
		if c < '0' || c > '9' {
			return 0, 0, fmt.Errorf("%w: %q is not a decimal number", ErrTokens, s)
		}
		if digits = digits*10 + int64(c-'0'); digits > int64(MaxTokens) {
			return 0, 0, fmt.Errorf("%w: %q has %w", ErrTokens, s, errDigits)
		}
	}
	if digits == 0 {
		return 0, 0, nil
	}
	for digits%10 == 0 && scale > -maxScale {
		digits /= 10
		scale--
	}
	return digits, scale, nil
}

// maxScale bounds the exponents of parseDecimal. No valid amount, rate or cost needs more.
const maxScale = 40
