// SPDX-License-Identifier: Apache-2.0

package denials

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"log/slog"
	"net/netip"
	"strings"
	"unicode/utf8"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/clientaddr"
	"github.com/metehq/mete/policy"
)

// maxShown bounds the length of a displayed value. Longer values are cut.
const maxShown = 256

// write writes one line. slog quotes the values, so that they cannot break the line.
func (l *Log) write(ctx context.Context, i id, b burst) {
	l.lines.Add(1)
	message := "denied"
	if i.shadow {
		message = "would be denied"
	}
	attrs := make([]slog.Attr, 0, 8)
	text := func(name, value string) {
		if value != "" {
			attrs = append(attrs, slog.String(name, value))
		}
	}
	text("rule", i.rule)
	if i.limit != i.rule {
		text("limit", i.limit)
	}
	text("reason", i.reason)
	text("key", l.key(i.key))
	text("client", l.client(b.address))
	switch {
	case b.retry == bucket.Never:
		text("retry_after", "never")
	case b.retry > 0:
		attrs = append(attrs, slog.Duration("retry_after", b.retry))
	}
	attrs = append(attrs, slog.Uint64("times", b.count))
	l.config.Logger.LogAttrs(ctx, slog.LevelInfo, message, attrs...)
}

// key returns the displayed form of a key: "~" and a part of its keyed hash.
func (l *Log) key(key string) string {
	switch {
	case key == "":
		return ""
	case l.config.Raw:
		return shown(key)
	}
	h := hmac.New(sha256.New, l.config.Key)
	h.Write([]byte("mete denial key\x00"))
	h.Write([]byte(key))
	return string(policy.AppendKeyHash(nil, h.Sum(nil)))
}

// client returns the network of an address. Other text is not shown, because a client may have sent it.
func (l *Log) client(text string) string {
	a, err := netip.ParseAddr(text)
	if err != nil {
		return ""
	}
	a = a.Unmap().WithZone("")
	if l.config.Raw {
		return a.String()
	}
	return clientaddr.Network(a).String()
}

// shown cuts a long value.
func shown(s string) string {
	if len(s) > maxShown {
		s = s[:maxShown]
	}
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	return s
}
