/// The reason why a data directory, or a backup of one, cannot be used, with a description for the operator. Nothing in it was
/// changed.
package struct StoreOpenFault: Error, Equatable, CustomStringConvertible {
    package enum Kind: Equatable, Sendable {
        case locked
        case notWritable
        case full
        /// There is no database, and the caller did not allow to create one.
        case missing
        /// The path of the database is occupied by another file.
        case taken
        /// The file of the database is empty.
        case empty
        case newer
        /// The tables of the database do not match its version.
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

    /// Converts a fault of a store that was opened.
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
