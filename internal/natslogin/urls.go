package natslogin

import (
	"regexp"
	"strings"
)

// The users and passwords of URLs. In those of NATS they may have what a URL escapes: its parser then repeats all of it.
var (
	userinfo     = regexp.MustCompile(`://[^/?#\s,"]*@`)
	natsUserinfo = regexp.MustCompile(`\b(nats|tls|wss?)://(?:[^\s":]|:[^\s"/]|:/[^\s"/])*@`)
)

// WithoutPasswords takes users and passwords out of the URLs in a text.
func WithoutPasswords(text string) string {
	text = natsUserinfo.ReplaceAllString(text, "$1://xxxxx@")
	return userinfo.ReplaceAllString(text, "://xxxxx@")
}

// WithoutPassword takes users and passwords out of the URL of a server, or of several, which may lack a scheme.
func WithoutPassword(url string) string {
	url = WithoutPasswords(url)
	first, _, _ := strings.Cut(url, "://")
	if at := strings.LastIndex(first, "@"); at >= 0 {
		url = "xxxxx" + url[at:]
	}
	return url
}

// What a URL's parser quotes: the URL, perhaps without its end, and what it takes a part of the password for.
var (
	parsed = regexp.MustCompile(`parse "(?:[^"\\]|\\.)*": `)
	faulty = regexp.MustCompile(`(invalid port|invalid URL escape) "[^"]*"`)
)

// Redact takes users and passwords out of a text that tells of the URL of a server.
func Redact(text, url string) string {
	if hidden := WithoutPassword(url); hidden != url {
		text = faulty.ReplaceAllString(parsed.ReplaceAllString(text, ""), "$1")
		text = strings.ReplaceAll(text, url, hidden)
		for _, one := range strings.Split(url, ",") {
			if strings.Contains(one, "@") {
				text = strings.ReplaceAll(text, one, WithoutPassword(one))
			}
		}
	}
	return WithoutPasswords(text)
}
