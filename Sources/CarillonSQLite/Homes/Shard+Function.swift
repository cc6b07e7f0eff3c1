import CarillonCore
import GRDB

extension Shard {
    /// Returns the number of the shard of an item with an app and a name. The statements that write hand-overs call it.
    static let functionOfItems = DatabaseFunction("shard_of_item", argumentCount: 2, pure: true) { values in
        guard let app = Int64.fromDatabaseValue(values[0]), let name = String.fromDatabaseValue(values[1]) else {
            return nil
        }
        return Int64(Shard(of: AppSerial(app), item: name).number)
    }
}
