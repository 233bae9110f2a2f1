package api

// A reply is bounded in bytes by construction: rows of lists, items and views are cut to fit (package fit),
// and lists are paged. Sizes are those of the JSON that is sent, escapes included.
const (
	MaxPageBytes = 700 << 10 // of a page: below the server's largest message, 1 MiB
	MaxItemBytes = 64 << 10  // of an item of the escalation inbox, without its transcript
	MaxRowBytes  = 8 << 10   // of a row of a list
)

// A PageOf is a page of a list, as it is filled.
type PageOf[E any] struct {
	Items []E
	limit int
	size  int
}

// NewPage is an empty page of at most limit items, 0 for the default.
func NewPage[E any](limit int) *PageOf[E] { return &PageOf[E]{Items: []E{}, limit: PageSize(limit)} }

// Add adds an item, and reports whether there was room: if not, it is the first of the next page.
func (p *PageOf[E]) Add(item E, size int) bool {
	if len(p.Items) == p.limit || p.size+size > MaxPageBytes && len(p.Items) > 0 {
		return false
	}
	p.Items = append(p.Items, item)
	p.size += size + 1
	return true
}
