// The imports of the guide to moving from iCloud. They hold in all files of a target.

@_exported import Foundation
@_exported import UbiquitousKeyValueStore
@_exported import UbiquitousKeyValueStorePorting
