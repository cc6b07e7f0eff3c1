/// The change of one completion, before its consequences for other completions.
package struct CompletionStep: Equatable, Sendable {
    package var before: Completion
    /// Nil if the row is removed.
    package var after: Completion?
    /// The later update that replaces the completion and all completions that it replaced.
    package var coalescer: UpdateSerial?
    /// Whether the completion's envelope must be removed from the inbox, if there is one.
    package var takesOut: Bool

    package init(before: Completion, after: Completion?, coalescer: UpdateSerial? = nil, takesOut: Bool = false) {
        self.before = before
        self.after = after
        self.coalescer = coalescer
        self.takesOut = takesOut
    }
}

/// The rows of completions that ``CompletionRules`` changes, in the order of the members.
package struct CompletionChanges: Equatable, Sendable {
    /// A later update that replaces a completion and all completions that it replaced.
    package struct Coalescence: Equatable, Sendable {
        package var key: CompletionKey
        package var coalescer: UpdateSerial

        package init(_ key: CompletionKey, by coalescer: UpdateSerial) {
            self.key = key
            self.coalescer = coalescer
        }
    }

    package var coalesced: Coalescence?
    package var removed: CompletionKey?
    package var inserted: Completion?
    /// Final entries of the update of ``inserted``, up to this one, are forgotten.
    package var forgottenEntry: Int?
    package var changed: [CompletionKey: Completion] = [:]
    /// The completions in ``changed`` that no later update replaces any more.
    package var revived: Set<CompletionKey> = []
    /// The binding whose device missed content.
    package var needsResync: BindingSerial?

    package init() {}

    init(inserting completion: Completion) {
        inserted = completion
        if completion.key.entry > Completion.mostEntries {
            forgottenEntry = completion.key.entry - Completion.mostEntries
        }
    }
}
