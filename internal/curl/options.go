// SPDX-License-Identifier: Apache-2.0

package curl

import "strings"

// shorts are the options that have a letter.
var shorts = map[byte]string{
	'a': "append", 'E': "cert", 'K': "config", 'C': "continue-at", 'b': "cookie", 'c': "cookie-jar", 'd': "data", 'q': "disable",
	'D': "dump-header", 'f': "fail", 'F': "form", 'P': "ftp-port", 'G': "get", 'g': "globoff", 'I': "head", 'H': "header", 'h': "help",
	'0': "http1.0", 'i': "include", 'k': "insecure", '4': "ipv4", '6': "ipv6", 'j': "junk-session-cookies", 'l': "list-only",
	'L': "location", 'M': "manual", 'm': "max-time", 'n': "netrc", ':': "next", 'N': "no-buffer", 'o': "output", 'Z': "parallel",
	'#': "progress-bar", 'x': "proxy", 'U': "proxy-user", 'p': "proxytunnel", 'Q': "quote", 'r': "range", 'e': "referer",
	'J': "remote-header-name", 'O': "remote-name", 'R': "remote-time", 'X': "request", 'S': "show-error", 's': "silent",
	'Y': "speed-limit", 'y': "speed-time", '2': "sslv2", '3': "sslv3", 't': "telnet-option", 'z': "time-cond", '1': "tlsv1",
	'T': "upload-file", 'B': "use-ascii", 'u': "user", 'A': "user-agent", 'v': "verbose", 'V': "version", 'w': "write-out",
}

// A kind says what an option is to a request.
type kind uint8

const (
	unknown kind = iota
	asked        // it says something of the request, and has a value
	askedFlag
	ignored       // it has a value, and says nothing of the request
	ignoredSecret // and the value may be one
	flag          // it has none, and says nothing
	differs       // it has none, and the request may be another because of it
	refused       // what it asks for is no request, or several
)

// options are all that curl has, by name: those of its current versions, and old ones
// that are still to be found.
var options = table()

func table() map[string]kind {
	all := map[string]kind{}
	for k, names := range map[kind]string{
		asked: `cookie data data-ascii data-binary data-raw data-urlencode form form-string header json oauth2-bearer range
			referer request request-target upload-file url url-query user user-agent`,
		askedFlag: `compressed get globoff head path-as-is`,
		ignored: `abstract-unix-socket alt-svc aws-sigv4 cacert capath cert-type ciphers connect-timeout connect-to continue-at
			cookie-jar create-file-mode crlfile curves delegation dns-interface dns-ipv4-addr dns-ipv6-addr dns-servers doh-url
			dump-header ech egd-file engine etag-compare etag-save expect100-timeout ftp-account ftp-alternative-to-user ftp-method
			ftp-port ftp-ssl-ccc-mode happy-eyeballs-timeout-ms haproxy-clientip hostpubmd5 hostpubsha256 hsts interface ip-tos
			ipfs-gateway keepalive-cnt keepalive-time key key-type krb libcurl limit-rate local-port login-options mail-auth mail-from
			mail-rcpt max-filesize max-redirs max-time netrc-file noproxy output output-dir parallel-max parallel-max-host
			pinnedpubkey proto proto-default proto-redir proxy-cacert proxy-capath proxy-cert-type proxy-ciphers proxy-crlfile
			proxy-header proxy-key proxy-key-type proxy-pinnedpubkey proxy-service-name proxy-tls13-ciphers proxy-tlsauthtype pubkey
			quote random-file rate resolve retry retry-delay retry-max-time sasl-authzid service-name sigalgs
			socks5-gssapi-service speed-limit speed-time stderr telnet-option tftp-blksize time-cond tls-max tls13-ciphers
			tlsauthtype trace trace-ascii trace-config unix-socket upload-flags vlan-priority write-out`,
		ignoredSecret: `cert pass preproxy proxy proxy-cert proxy-pass proxy-tlspassword proxy-tlsuser proxy-user proxy1.0 socks4 socks4a
			socks5 socks5-hostname tlspassword tlsuser`,
		flag: `append basic buffer ca-native cert-status clobber compressed-ssh create-dirs crlf disable disable-eprt disable-epsv
			disallow-username-in-url doh-cert-status doh-insecure dump-ca-embed fail fail-early fail-with-body false-start
			form-escape ftp-create-dirs ftp-pasv ftp-pret ftp-skip-pasv-ip ftp-ssl-ccc ftp-ssl-control http0.9 http1.0 http1.1
			http2 http2-prior-knowledge http3 http3-only ignore-content-length include insecure ipv4 ipv6 junk-session-cookies
			keepalive list-only location location-trusted mail-rcpt-allowfails metalink mptcp alpn no-alpn no-buffer no-clobber
			no-keepalive no-npn no-progress-meter no-sessionid npn parallel parallel-immediate post301 post302 post303 progress-bar
			progress-meter proxy-anyauth proxy-basic proxy-ca-native proxy-digest proxy-http2 proxy-insecure proxy-negotiate
			proxy-ntlm proxy-ssl-allow-beast proxy-ssl-auto-client-cert proxy-tlsv1 proxytunnel raw remote-header-name remote-name
			remote-name-all remote-time remove-on-error retry-all-errors retry-connrefused sasl-ir sessionid show-error silent
			skip-existing socks5-basic socks5-gssapi socks5-gssapi-nec ssl ssl-allow-beast ssl-auto-client-cert ssl-no-revoke
			ssl-reqd ssl-revoke-best-effort sslv2 sslv3 styled-output suppress-connect-headers tcp-fastopen tcp-nodelay
			tftp-no-options tls-earlydata tlsv1 tlsv1.0 tlsv1.1 tlsv1.2 tlsv1.3 tr-encoding trace-ids trace-time use-ascii verbose
			xattr`,
		differs: `anyauth digest haproxy-protocol negotiate netrc netrc-optional ntlm ntlm-wb`,
		refused: `config help manual next variable version`,
	} {
		for name := range strings.FieldsSeq(names) {
			all[name] = k
		}
	}
	return all
}

// whyRefused says it of those that are.
var whyRefused = map[string][2]string{
	"config":   {"options in a file are not read", "write them here"},
	"help":     {"this asks for help, and makes no request", ""},
	"manual":   {"this asks for the manual, and makes no request", ""},
	"next":     {"one request is explained at a time", "leave out what begins with --next"},
	"variable": {"variables of curl are not replaced", "write their values where they stand"},
	"version":  {"this asks for the version, and makes no request", ""},
}
