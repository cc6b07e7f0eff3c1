/// Why a data directory, or a backup of one, cannot be used, in words for the operator. Nothing in it was changed.
package struct StoreOpenFault: Error, Equatable, CustomStringConvertible {
    package enum Kind: Equatable, Sendable {
        case locked
        case notWritable
        case full
        /// There is no database, and none is to be made.
        case missing
        /// Something stands where the database is to go.
        case taken
        /// There is a file, without what was in it.
        case empty
        case newer
        /// It has other tables than its version says.
        case different
        case foreign
        case damaged
        case other
    }

    package var kind: Kind
    package var description: String

    package init(kind: Kind, description: String) {
        self.kind = kind
        self.description = description
    }

    /// What a store met after it was opened.
    package init(_ fault: StoreFault, directory: String) {
        let kind: Kind =
            switch fault.kind {
            case .damaged: .damaged
            case .full: .full
            case .fenced, .unreachable, .outcomeUnknown, .unavailable: .other
            }
        let advice = kind == .damaged ? " Restore a backup." : ""
        self.init(kind: kind, description: "The data directory \(directory) cannot be used: \(fault.message).\(advice)")
    }
}
