/// The rows of bindings that ``BindingRules`` changes, in the order of the members.
package struct BindingChanges: Equatable, Sendable {
    /// A binding that ends. Its location, its revision of parameters and its place in the log are cleared.
    package struct End: Equatable, Sendable {
        package var binding: BindingSerial
        package var revision: Int64
        /// Whether its completions must still be released.
        package var needsCleanup: Bool
        package var at: Timestamp

        package init(binding: BindingSerial, revision: Int64, needsCleanup: Bool, at: Timestamp) {
            self.binding = binding
            self.revision = revision
            self.needsCleanup = needsCleanup
            self.at = at
        }
    }

    /// A new binding. The store assigns its serial. The binding begins at the present end of its app's log.
    package struct New: Equatable, Sendable {
        package var owner: BindingOwner
        package var profile: String
        package var at: Timestamp

        package init(owner: BindingOwner, profile: String, at: Timestamp) {
            self.owner = owner
            self.profile = profile
            self.at = at
        }
    }

    /// A binding that is used again. Its place in the log is cleared, and its completions are not released any more.
    ///
    /// Completions that ended with the binding become due, unless the device left the audience or the update ended.
    package struct Again: Equatable, Sendable {
        package var binding: BindingSerial
        package var revision: Int64
        package var needsResync: Bool
        /// Whether completions of expired content that ended with the binding become expired.
        package var expiresContent: Bool
        package var at: Timestamp

        package init(binding: BindingSerial, revision: Int64, needsResync: Bool, expiresContent: Bool, at: Timestamp) {
            self.binding = binding
            self.revision = revision
            self.needsResync = needsResync
            self.expiresContent = expiresContent
            self.at = at
        }
    }

    package enum Beginning: Equatable, Sendable {
        case new(New)
        case again(Again)
    }

    package var ended: [End] = []
    package var removed: BindingSerial?
    package var beginning: Beginning?

    package init() {}
}

/// The place of a binding in the log, and the update up to which the device's content is complete.
package struct CursorChange: Equatable, Sendable {
    package var cursor: AudienceCursor
    package var seenTo: UpdateSerial
}
