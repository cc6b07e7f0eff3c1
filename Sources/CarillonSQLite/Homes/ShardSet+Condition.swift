import CarillonCore
import GRDB

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension ShardSet {
    /// Returns "AND" with the condition that a column has the serial number of a device in the set. Empty for the set of all
    /// shards, so that the statements of a single home have no condition.
    ///
    /// The set is the argument `:shards` and not part of the text. All sets other than the set of all shards therefore share
    /// one statement. The caller binds the argument by ``arguments(with:)`` or by `BoundStatement.bind(_:)`.
    ///
    /// No index has the shard of a device. Each write would update such an index, and no read would use it, because one
    /// process has all shards.
    func condition(on column: String) -> String { self == .all ? "" : "AND \(Self.function.name)(\(column), :shards)" }

    /// Returns "AND" with the condition that an item is in the set, as ``condition(on:)`` does for a device.
    ///
    /// - Parameters:
    ///   - app: The column with the serial number of the app.
    ///   - name: The column with the name of the item.
    func condition(onItem app: String, _ name: String) -> String {
        self == .all ? "" : "AND \(Self.functionOfItems.name)(\(app), \(name), :shards)"
    }

    /// Returns the arguments of a statement with ``condition(on:)`` or ``condition(onItem:_:)``.
    ///
    /// - Parameter others: The arguments without the set.
    func arguments(with others: StatementArguments = StatementArguments()) -> StatementArguments {
        self == .all ? others : others + ["shards": Data(bitmap)]
    }

    /// Returns "AND" with the condition that a column has the number of a shard in the set. Empty for the set of all shards.
    ///
    /// The set is the argument `:shards`, as in ``condition(on:)``. It is a list of numbers, so that an index on the column
    /// is used. The caller binds it by `BoundStatement.bind(numbersOf:)`.
    func condition(onShard column: String) -> String {
        self == .all ? "" : "AND \(column) IN \(SQLDialect.numbers(of: ":shards"))"
    }

    /// The numbers of the shards as JSON.
    fileprivate var numbers: String { "[" + shards.map { String($0.number) }.joined(separator: ",") + "]" }

    /// Whether a device is in a set of shards.
    static let function = DatabaseFunction("is_device_in", argumentCount: 2, pure: true) { values in
        guard let device = Int64.fromDatabaseValue(values[0]), let bitmap = Data.fromDatabaseValue(values[1]),
            let shards = ShardSet(bitmap: bitmap)
        else { return false }
        return shards.contains(Shard(of: DeviceSerial(device)))
    }

    /// Whether an item, identified by app and name, is in a set of shards.
    static let functionOfItems = DatabaseFunction("is_item_in", argumentCount: 3, pure: true) { values in
        guard let app = Int64.fromDatabaseValue(values[0]), let name = String.fromDatabaseValue(values[1]),
            let bitmap = Data.fromDatabaseValue(values[2]), let shards = ShardSet(bitmap: bitmap)
        else { return false }
        return shards.contains(Shard(of: AppSerial(app), item: name))
    }
}

extension BoundStatement {
    /// Binds the next argument to the set, if the statement has a parameter of ``ShardSet/condition(on:)``.
    mutating func bind(_ shards: ShardSet) {
        if shards != .all { bind(shards.bitmap) }
    }

    /// Binds the next argument to the numbers of the shards, if the statement has a parameter of
    /// ``ShardSet/condition(onShard:)``.
    mutating func bind(numbersOf shards: ShardSet) {
        if shards != .all { bind(shards.numbers) }
    }
}
